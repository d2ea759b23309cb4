"""Reading the audit trail: rotated files in order, two lines joined into one row, filters."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

from capdex_engine.errors import ConfigurationError
from capdex_server.journal import all_of, held
from capdex_server.lines import shown

UNFINISHED: Final = "unfinished"
"""Started, without an end: the server was killed, or the call is still on its way."""
GOOD: Final = frozenset({"ok", "dry_run"})
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MAX_LINE: Final = 64 * 1024
_MAX_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One execute."""

    time: datetime
    """When it was started or refused."""
    id: str
    tenant: str
    caller: str
    capability: str
    digest: str | None
    outcome: str
    status: int | None = None
    ms: int | None = None
    bytes: int | None = None

    @property
    def failed(self) -> bool:
        """Whether it gave no good answer, for whatever reason."""
        return self.outcome not in GOOD

    def to_json(self) -> dict[str, Any]:
        """Return the row's object; what is not known is left out."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "time"}
        return {"time": _text_of(self.time)} | {k: v for k, v in fields.items() if v is not None}


@dataclass(frozen=True, slots=True)
class Filter:
    """What a reader wants of a trail; None is everything."""

    tenant: str | None = None
    caller: str | None = None
    capability: str | None = None
    """A glob."""
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    failed: bool = False

    def fits(self, row: Row) -> bool:
        """Return whether the row is wanted."""
        exact = ("tenant", "caller", "outcome")
        return (
            all(getattr(self, key) in (None, getattr(row, key)) for key in exact)
            and (self.capability is None or fnmatch.fnmatchcase(row.capability, self.capability))
            and (self.since is None or row.time >= self.since)
            and (self.until is None or row.time < self.until)
            and (row.failed or not self.failed)
        )


class Joiner:
    """Makes rows of lines; give it the lines in the order in which they were written."""

    def __init__(self) -> None:
        self.damaged = 0
        """Lines that are none of an audit trail, such as one cut by a power failure."""
        self._started: dict[str, Row] = {}

    def rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yield a row for each execute that has ended."""
        for line in lines:
            if not line.strip():
                continue
            found = _read(line)
            if found is None:
                self.damaged += 1
                continue
            event, row = found
            if event == "started":
                self._started[row.id] = row
                continue
            started = self._started.pop(row.id, None)
            yield replace(row, time=started.time) if started else row

    def unfinished(self) -> Iterator[Row]:
        """Yield a row for each execute that has only begun."""
        yield from self._started.values()


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a trail with its rotated files, the oldest first.

    Raises:
        ConfigurationError: There is none, or it cannot be read.
    """
    with ExitStack() as stack:
        try:
            with held(path):
                files = [stack.enter_context(one.open("rb")) for one in all_of(path)]
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read ({error.strerror or error}).") from None
        if not files:
            raise ConfigurationError(f"There is no audit trail {path}. [audit] to = FILE writes one.")
        for file in files:
            yield from _lines(file)


def follow(path: Path, wait: Callable[[], None]) -> Iterator[str]:
    """Yield the lines that come to a trail, those of files that are rotated meanwhile included.

    Args:
        path: The file that is written; it may not be there yet.
        wait: Called where there is no further line at the moment.
    """
    file: IO[bytes] | None = None
    rest = b""
    try:
        while True:
            file = file or _opened(path)
            chunk = file.read() if file else b""
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
            if chunk:
                continue
            if file is not None and _moved(file, path):
                # What was written to it before it was moved has been read: a writer has the lock for both.
                rest, last = b"", rest + file.read()
                yield from last.decode("utf-8", "replace").splitlines()
                file.close()
                file = None
                continue
            wait()
    finally:
        if file is not None:
            file.close()


def moment(text: str, now: datetime) -> datetime:
    """Read ``2026-01-31``, ``2026-01-31T12:00:00Z`` (UTC unless it says else), or ``2h`` before now.

    Raises:
        ValueError: It is neither.
    """
    ago = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip().lower())
    try:
        if ago:
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z, or 30m, 2h, 7d before now") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _moved(file: IO[bytes], path: Path) -> bool:
    try:
        return not os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lines(file: IO[bytes]) -> Iterator[str]:
    while line := file.readline(_MAX_LINE):
        yield line.decode("utf-8", "replace")


def _read(line: str) -> tuple[str, Row] | None:
    keys = ("id", "tenant", "caller", "capability")
    try:
        found = json.loads(line)
        event, time = found["event"], datetime.fromisoformat(found["time"])
        identity, tenant, caller, capability = (shown(found[key], _MAX_TEXT) for key in keys)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if event not in {"started", "ended", "refused", "dry_run"} or time.tzinfo is None:
        return None
    outcome = UNFINISHED if event == "started" else shown(found.get("outcome"))
    digest = shown(found.get("digest")) or None
    status, ms, size = (_number(found.get(key)) for key in ("status", "ms", "bytes"))
    return event, Row(time, identity, tenant, caller, capability, digest, outcome, status, ms, size)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text_of(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
