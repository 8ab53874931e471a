"""The Prefect server that Fathom starts: whatever its database refuses, it goes on answering."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

import fathom.flows.prefect_server  # noqa: F401 - for what it does to each connection


async def test_a_failed_statement_holds_up_nobody(tmp_path: Path) -> None:
    """Its cursor is collected while its connection waits for a lock, which only the event loop can release."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'prefect.db'}")
    insert = "INSERT INTO runs VALUES (1)"
    async with engine.connect() as holder, engine.connect() as other:
        await holder.exec_driver_sql("CREATE TABLE runs (id)")
        await holder.commit()
        await holder.exec_driver_sql(insert)
        await other.exec_driver_sql("PRAGMA busy_timeout = 0")
        with pytest.raises(OperationalError, match="locked") as failed:
            await other.exec_driver_sql(insert)
        await other.rollback()
        await other.exec_driver_sql("PRAGMA busy_timeout = 3000")
        waiting = asyncio.create_task(other.exec_driver_sql(insert))
        await asyncio.sleep(0.3)
        del failed
        gc.collect()
        await holder.commit()
        await waiting
    await engine.dispose()
