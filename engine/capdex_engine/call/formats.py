"""The formats that are checked: only where a wrong value is cheap to tell and certain to be wrong."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

from jsonschema import FormatChecker

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EMAIL: Final = re.compile(r"[^@\s].*@[^@\s]+|[^@\s]@[^@\s]+")


def _date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _parses(datetime.date.fromisoformat, text)


def _date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    return match is not None and _date(match[1])


def _parses(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "date": _date,
    "date-time": _date_time,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "email": lambda text: len(text) < 1000 and _EMAIL.fullmatch(text) is not None,
    "ipv4": lambda text: _parses(ipaddress.IPv4Address, text),
    "ipv6": lambda text: _parses(ipaddress.IPv6Address, text),
}


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, check in _CHECKS.items():
        checker.checks(name)(lambda value, check=check: not isinstance(value, str) or check(value))
    return checker


FORMATS: Final = _checker()
"""date, date-time (RFC 3339, a space for the T allowed), uuid, email, ipv4, ipv6."""
