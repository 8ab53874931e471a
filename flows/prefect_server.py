"""Prefect's command line, whose server is not held up by its SQLite database: `python -m fathom.flows.prefect_server`.

A statement that fails ("database is locked") leaves its cursor open in SQLAlchemy's adapter for aiosqlite. Python's
garbage collector closes it later, in the thread of the event loop, and waits there for whatever uses that connection
by then: often a statement that waits for the lock of a transaction that only the event loop could end. The server then
answers nobody for the 60 seconds that Prefect lets a statement wait. Here a failed statement closes its cursor at once,
in its own thread.
"""

from __future__ import annotations

import runpy
import sqlite3
from typing import Any, Self

from sqlalchemy import event
from sqlalchemy.engine import Dialect, Engine


class _Cursor(sqlite3.Cursor):
    """A cursor that is closed when a statement fails."""

    def execute(self, *arguments: Any) -> Self:
        try:
            return super().execute(*arguments)
        except sqlite3.Error:
            self.close()
            raise

    def executemany(self, *arguments: Any) -> Self:
        try:
            return super().executemany(*arguments)
        except sqlite3.Error:
            self.close()
            raise


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


def close_failed_cursors(dialect: Dialect, _record: object, _arguments: object, parameters: dict[str, Any]) -> None:
    """Make each new connection to a SQLite database one whose failed statements close their cursors."""
    if dialect.name == "sqlite":
        parameters["factory"] = _Connection


event.listen(Engine, "do_connect", close_failed_cursors)


if __name__ == "__main__":
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
