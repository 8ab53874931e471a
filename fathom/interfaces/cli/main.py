"""The entry point of the `fathom` command."""

from __future__ import annotations

import atexit
import gc
import sys

try:
    from fathom.interfaces.cli.exits import check_text, exits
    from fathom.interfaces.cli.loading import loading
except KeyboardInterrupt:
    sys.exit(130)


def main() -> None:
    """Run the command line and exit; `fathom.interfaces.cli.exits` lists the codes."""
    gc.set_threshold(10_000, 10, 10)  # a run makes many objects at once, and few of them are garbage
    atexit.register(gc.freeze)  # collecting everything once more takes a second at exit
    with exits():
        arguments = check_text(sys.argv[1:]) or ["--help"]
        with loading():
            from fathom.interfaces.cli.warm import handed_over

        if (code := handed_over(arguments)) is not None:
            sys.exit(code)
        # Imported here, so that Ctrl-C is an exit like any other.
        with loading():
            import typer

            from fathom.interfaces.cli.commands import app

        # Not by calling `app` or its `main`, which would replace our exception hook and say nothing after Ctrl-C.
        command = typer.main.get_command(app)
        command._main_shell_completion({}, "fathom")  # exits if a shell asks what can be completed
        with command.make_context("fathom", arguments) as context:
            command.invoke(context)
