"""Where a server listens. It imports nothing that loads slowly: a port that is taken is said at once."""

from __future__ import annotations

import errno
import socket

from fathom.errors import InvalidInput
from fathom.serve.options import Options


def listen(options: Options) -> socket.socket:
    """Return a socket that listens as the options say.

    Raises:
        InvalidInput: the address is not one of this machine, or its port is taken.
    """
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            said, how = (
                f"Port {options.port} of {options.host} is taken.",
                "choose another with --port; 0 for a free one",
            )
        elif error.errno == errno.EACCES:
            said, how = f"Port {options.port} may not be used by this user.", "choose one from 1024 on with --port"
        else:
            said, how = f"The server cannot listen on {options.host}: {error}.", "use an address of this machine"
        raise InvalidInput(said, next_step=how) from error
