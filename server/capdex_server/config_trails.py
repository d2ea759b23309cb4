"""``[audit]`` and ``[query_log]``: where the trails go and how they are rotated; and callers' tokens."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

MIB: Final = 1024 * 1024
STDOUT: Final = "stdout"
OFF: Final = "off"
MAX_TOKENS: Final = 8


class Table(BaseModel):
    """A table of the file: unknown keys are errors, and no value is echoed in a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)


def _word(value: str) -> str:
    return value.lower() if value.lower() in {STDOUT, OFF} else value


class _Rotated(Table):
    max_bytes: int = Field(default=64 * MIB, ge=1024, le=1024 * 1024 * MIB)
    """Bytes of one file; a fuller one becomes FILE.1, and what was FILE.1 becomes FILE.2."""
    keep: int = Field(default=10, ge=1, le=10_000)
    """Rotated files that are kept; older ones are deleted."""


class AuditConfig(_Rotated):
    """``[audit]``: what every execute was, as JSON lines; never arguments or bodies."""

    to: Annotated[str, Field(min_length=1), AfterValidator(_word)] = STDOUT
    """``"stdout"``, ``"off"``, or a file; `capdex stdio`, whose standard output is the protocol's, writes to
    a file or not at all."""
    fsync: bool = False
    """Wait for the disk before a call is sent: lines then survive the machine, not the process alone."""

    @property
    def file(self) -> Path | None:
        """The file to write, where it is one."""
        return None if self.to in {STDOUT, OFF} else Path(self.to)

    def anchored(self, folder: Path) -> Self:
        """Return it with its path relative to the configuration's folder."""
        if self.file is None:
            return self
        return self.model_copy(update={"to": str(folder / self.file.expanduser())})


class QueryLogConfig(_Rotated):
    """``[query_log]``: what was searched for and then called, for ``capdex bench quality``."""

    path: Path | None = None
    """The file; without it nothing is logged. It holds queries in the agents' own words, which may say
    anything; neither caller nor tenant."""

    def anchored(self, folder: Path) -> Self:
        """Return it with its path relative to the configuration's folder."""
        if self.path is None:
            return self
        return self.model_copy(update={"path": folder / self.path.expanduser()})


def _token_hash(value: str) -> str:
    digest = value.removeprefix("sha256:").lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError("must be the SHA-256 of the token: 64 hexadecimal digits")
    return digest


def _moment(value: object) -> object:
    known = isinstance(value, datetime) and value.tzinfo is not None
    if isinstance(value, date) and not known:
        raise ValueError("must have a time and a zone: 2026-12-31T00:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]


class TokenConfig(Table):
    """One token of a caller."""

    sha256: Annotated[str, AfterValidator(_token_hash)]
    """SHA-256 of the token in hexadecimal."""
    expires: Moment | None = None
    """When it ceases to be valid; without it, the caller's ``expires`` says."""

    def valid(self, now: datetime) -> bool:
        """Return whether the token is valid at a time."""
        return self.expires is None or now.astimezone(UTC) < self.expires


def _tokens(value: object) -> object:
    """Let one hash stand where a list of hashes or tables may."""
    several = value if isinstance(value, list | tuple) else [value]
    return [{"sha256": one} if isinstance(one, str) else one for one in several]


Tokens = Annotated[
    tuple[TokenConfig, ...], Field(min_length=1, max_length=MAX_TOKENS), BeforeValidator(_tokens)
]
