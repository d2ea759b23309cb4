"""The demo's data, in SQLite: one connection, one transaction at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from capdex_server.demo.document import demo_tables
from capdex_server.demo.problems import Problem, invalid_field

Row = dict[str, Any]
"""A row by the document's property names, JSON columns parsed."""

JSON_COLUMNS: Final = frozenset({"skills", "address", "payRange", "entries", "customer", "lines", "payments"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table, the view it is read through, and how its rows are named to people."""

    name: str
    rows: str
    prefix: str
    noun: str


WORKERS: Final = Table("workers", "workerRows", "wrk", "worker")
TEAMS: Final = Table("teams", "teamRows", "team", "team")
SHIFTS: Final = Table("shifts", "shiftRows", "shf", "shift")
JOBS: Final = Table("jobs", "jobs", "job", "job")
APPLICATIONS: Final = Table("applications", "applications", "app", "application")
TIME_OFF: Final = Table("timeOff", "timeOffRows", "off", "time-off request")
DOCUMENTS: Final = Table("documents", "documentRows", "doc", "document")
TIMESHEETS: Final = Table("timesheets", "timesheetRows", "tms", "timesheet")
INVOICES: Final = Table("invoices", "invoiceRows", "inv", "invoice")


def utc_now() -> datetime:
    """Return the present moment, the default clock."""
    return datetime.now(UTC)


def moment_text(moment: datetime) -> str:
    """Return a moment as it is stored and answered: UTC, whole seconds, ``Z``."""
    # Not strftime, which leaves early years without their zeros.
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


class Tables:
    """The tables during one transaction.

    Args:
        connection: A connection inside a transaction.
        now: The moment at which the transaction happens.
    """

    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self._connection = connection
        self.now = moment_text(now)
        self.today: date = now.astimezone(UTC).date()

    def find(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """Return the rows of a constant statement with named placeholders; lists go in as JSON."""
        bound = {name: _to_column(value) for name, value in (values or {}).items()}
        return [_to_row(row) for row in self._connection.execute(sql, bound)]

    def get(self, table: Table, row_id: str) -> Row:
        """Return one row; a :class:`Problem` of 404 when there is none."""
        row = self._one(table, row_id)
        if row is None:
            raise Problem(404, "not-found", f"There is no {table.noun} with the id {row_id!r}.")
        return row

    def known(self, table: Table, row_id: str | None, pointer: str, *, where: str = "body") -> None:
        """Check an id that the input refers to; a :class:`Problem` of 422 when it is unknown."""
        if row_id is not None and self._one(table, row_id) is None:
            raise invalid_field(pointer, f"There is no {table.noun} with the id {row_id!r}.", where=where)

    def add(self, table: Table, values: Mapping[str, Any]) -> Row:
        """Insert a row under a new id and return it as it is read."""
        row_id = self.new_id(table.prefix)
        self.insert(table.name, {"id": row_id, **values})
        return self.get(table, row_id)

    def insert(self, table: str, values: Mapping[str, Any]) -> None:
        """Insert a row."""
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        # Names are ours: the handlers' own keys, or properties that the document's schema admitted.
        self.find(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)  # noqa: S608

    def change(self, table: Table, row_id: str, changes: Mapping[str, Any]) -> Row:
        """Update some columns of a row and return it as it is read."""
        for name, value in changes.items():
            self.find(
                f"UPDATE {table.name} SET {name} = :value WHERE id = :id",  # noqa: S608 - as in insert
                {"value": value, "id": row_id},
            )
        return self.get(table, row_id)

    def remove(self, table: Table, row_id: str) -> None:
        """Delete a row."""
        self.find(f"DELETE FROM {table.name} WHERE id = :id", {"id": row_id})  # noqa: S608 - as in insert

    def new_id(self, prefix: str) -> str:
        """Return the next id of a kind, ``wrk_1001`` first."""
        self.find("INSERT OR IGNORE INTO counters VALUES (:prefix, 1000)", {"prefix": prefix})
        self.find("UPDATE counters SET last = last + 1 WHERE prefix = :prefix", {"prefix": prefix})
        [row] = self.find("SELECT last FROM counters WHERE prefix = :prefix", {"prefix": prefix})
        return f"{prefix}_{row['last']}"

    def _one(self, table: Table, row_id: str) -> Row | None:
        rows = self.find(f"SELECT * FROM {table.rows} WHERE id = :id", {"id": row_id})  # noqa: S608 - as in insert
        return rows[0] if rows else None


class Store:
    """The database; threads take turns.

    Args:
        database: A file, created when absent, or ``:memory:``.
        now: The clock, in any time zone.
    """

    def __init__(self, database: Path | str = ":memory:", *, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._connection = _connect(database, now)
        self._close = weakref.finalize(self, self._connection.close)

    @contextmanager
    def transaction(self) -> Iterator[Tables]:
        """Yield the tables; what was done is kept at the end, or undone when the block raises."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Tables(self._connection, self._now())
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the database; happens by itself when the store is forgotten."""
        self._close()


def _connect(database: Path | str, now: Callable[[], datetime]) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.create_function("now", 0, lambda: moment_text(now()))
    connection.create_function("today", 0, lambda: moment_text(now())[:10])
    connection.execute("PRAGMA foreign_keys = ON")
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'counters'").fetchall():
        connection.executescript(demo_tables())
    return connection


def _to_column(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _to_row(row: sqlite3.Row) -> Row:
    return {name: _from_column(name, row[name]) for name in row.keys()}  # noqa: SIM118 - a Row iterates values


def _from_column(name: str, value: Any) -> Any:
    return json.loads(value) if name in JSON_COLUMNS and value is not None else value
