"""The texts of ``[quotas]``: limits such as ``"100/minute; 2000/day"``, and the URL of the backend."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from limits import RateLimitItem

MEMORY: Final = "memory"
OFF: Final = "off"
MOST: Final = 100_000
"""The largest count of a limit: the times of so many calls are kept."""
SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys")
_WINDOW: Final = re.compile(
    r"(?P<count>\d{1,15})\s*(?:/|per\b)\s*(?:(?P<times>\d{1,4})\s*)?(?:second|minute|hour|day|month|year)s?",
    re.I,
)


def checked_limit(text: str) -> str:
    """Return a limit's text when it can be read.

    Raises:
        ValueError: It cannot; the message says how limits are written.
    """
    if text.strip().lower() == OFF:
        return OFF
    for window in re.split("[,;|]", text):
        found = _WINDOW.fullmatch(window.strip())
        if found is None:
            raise ValueError('must be a limit such as "100/minute", "10 per 5 minutes; 200/day", or "off"')
        if not 1 <= int(found["count"]) <= MOST or found["times"] in {"0", "00", "000", "0000"}:
            raise ValueError(
                f"must count from 1 to {MOST} in a window of at least one unit; "
                "to forbid something, write a caller's deny rule"
            )
    return text.strip()


def windows(text: str | None) -> tuple[RateLimitItem, ...]:
    """Return a limit's windows, the shortest first; none for ``None`` and ``"off"``."""
    if text is None or text == OFF:
        return ()
    # Late: commands that count nothing read the configuration too.
    from limits import parse_many

    return tuple(sorted(parse_many(text), key=lambda item: (item.get_expiry(), item.amount)))


def shown(window: RateLimitItem) -> str:
    """Return a window as it is written: ``"100/minute"``, ``"10/5minutes"``."""
    unit = window.GRANULARITY.name
    return f"{window.amount}/{unit if window.multiples == 1 else f'{window.multiples}{unit}s'}"


def checked_backend(text: str) -> str:
    """Return the backend when it is one; a URL that holds a password is refused without echoing it.

    Raises:
        ValueError: It is none.
    """
    if text == MEMORY:
        return text
    try:
        url = urlsplit(text)
        named = url.scheme in SCHEMES and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        named = False
    if not named or url.query or url.fragment or not re.fullmatch(r"/?\d*", url.path):
        raise ValueError('must be "memory" or a URL such as "redis://cache.example.com:6379/0"')
    if url.password is not None:
        raise ValueError("must not hold the password: name where it is in password_env or password_file")
    return text
