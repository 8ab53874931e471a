"""How a command imports what it needs, and ends: an exit code, and on stderr what happened, never a traceback.

0 done, 1 failed, 2 bad input, 3 no evidence, 130 interrupted or cancelled, 143 terminated (SIGTERM).
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

TYPE_CHECKING = False  # of `typing`, whose import is long enough to be interrupted before anything can say so
if TYPE_CHECKING:
    from typer import TyperException

_MISSING = r"Missing (?:argument|option) '?([\w-]+)"
_EXAMPLE = r"Example: (fathom .*)"
_EXTRA = r"Got unexpected extra argument(?:\(s\)|s)? \((.*)\)"


@contextmanager
def exits() -> Iterator[None]:
    """Turn whatever ends the block into an exit of the process."""
    sys.excepthook = _unexpected
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        _explain("interrupted", error)
        sys.exit(130)
    except BrokenPipeError:  # the reader has read enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        _exit(error)
        raise


def _exit(error: Exception) -> None:
    """Exit as an expected error asks for; return on any other."""
    import typer

    from fathom.errors import FathomError, InvalidInput, ServerLost

    if isinstance(error, typer.Exit):
        sys.exit(error.exit_code)
    if isinstance(error, typer.TyperException):
        _refuse(error)
        sys.exit(2)
    if isinstance(error, FathomError):
        if isinstance(error, InvalidInput) and error.wrong:
            from fathom.interfaces.cli.options import worded

            error = InvalidInput(worded(error.wrong), next_step=error.next_step)
        _explain(str(error), error)
        if isinstance(error, ServerLost):  # Prefect's threads wait for it as long as the process lives
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(error.exit_code)
        sys.exit(error.exit_code)


def _refuse(error: TyperException) -> None:
    """Write what is wrong with a command line, and how to see what is right; for a group alone, its help."""
    import re

    import typer
    from pydantic import ValidationError

    from fathom.text.plain import joined

    said, context = error.format_message().rstrip("."), getattr(error, "ctx", None)
    if context and said == context.get_help().rstrip("."):
        typer.echo(context.get_help(), err=True)
        return
    option, meant = getattr(error, "option_name", ""), getattr(error, "possibilities", None) or ()
    where = f"{context.command_path} --help" if context else "--help behind the command lists its options"
    if context and (missing := re.match(_MISSING, said)):
        named = missing[1] if missing[1].startswith("-") else missing[1].upper()
        said = f"{'The question' if missing[1] == 'query' else named} is missing"
        example = re.search(_EXAMPLE, context.command.help or "")
        where = f"for example: {example[1]}" if example else where
    elif isinstance(error, typer.BadParameter) and error.param and isinstance(error.__cause__, ValidationError):
        from fathom.config.given import wrong_in

        [wrong, *_] = wrong_in(error.__cause__.errors())
        name = error.param.get_error_hint().strip("'")
        said = wrong.told(f"{name} {wrong.value}").rstrip(".")
    elif option and context:
        near = f"; did you mean {joined(sorted(meant), 'or')}?" if meant else ""
        said = f"There is no option {option}{near}"
    elif option:
        said = f"{option} {'needs a value' if 'requires' in said else 'takes no value'}"
    elif extra := re.fullmatch(_EXTRA, said, re.DOTALL):
        asks = context and {"query", "text"} & {parameter.name for parameter in context.command.params}
        said = f"There is no place for {extra[1]!r}{': put the question in quotes' if asks else ''}"
    _explain(f"{said}{'' if said.endswith('?') else '.'} ({where})", error)


def check_text(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line; InvalidInput if one contains bytes that are not text."""
    for argument in arguments:
        if argument.encode(errors="replace").decode() != argument:
            from fathom.errors import InvalidInput

            raise InvalidInput(f"{argument!r} is not valid UTF-8.", next_step="check the terminal's encoding")
    return list(arguments)


def show_where(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an unexpected error."""
    from traceback import format_exception

    sys.stderr.write(_scrubbed("".join(format_exception(error))))


def _unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    where = " (unexpected; `fathom --debug ...` shows where)" if issubclass(kind, Exception) else ""
    _explain(f"{kind.__name__}: {error}{where}", error)


def _explain(message: str, error: BaseException) -> None:
    """Write one line on what happened, and one per note on how to continue; a terminal wraps them between words."""
    import shutil
    import textwrap

    for line in (message, *getattr(error, "__notes__", ())):
        said = " ".join(_scrubbed(line).split())
        if logged(said, error=True):
            continue
        said = f"fathom: {said}"
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            said = textwrap.fill(said, width, break_long_words=False, break_on_hyphens=False)
        sys.stderr.write(f"{said}\n")


def logged(line: str, *, error: bool = False) -> bool:
    """Write a line to the log if JSON logs replace the screen; return whether they do."""
    import logging

    from fathom.config.environment import Environment

    as_json = Environment.read().log == "json"
    if as_json:
        logging.getLogger("fathom").log(logging.ERROR if error else logging.INFO, "%s", line)
    return as_json


def _scrubbed(text: str) -> str:
    from fathom.config.environment import Environment
    from fathom.config.secrets import Scrubber

    return Scrubber(Environment.read().secrets).message(text)


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage while modules are imported inside the block, and never among what they have made.

    There is next to none, and Python would look through all of it again and again. Ctrl-C waits for the end of the
    block, unless it is pressed twice: in the middle of an import, it may come out as another error, or as none.
    """
    import signal
    import threading

    pressed = False

    def wait(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, wait)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if signal.getsignal(signal.SIGINT) is wait:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
