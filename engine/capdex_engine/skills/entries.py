"""The bytes of a ``skill://index.json`` -> its entries, checked one by one.

::

    {"skills": [{"name": "pay-run", "title"?: "Pay run", "description": "Runs the payroll.",
                 "capability": "skill:pay-run", "url": "skill://pay-run/SKILL.md"}]}

A bare list of entries is read too; further members of an entry are let go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.digest import canonical
from capdex_engine.catalog.texts import INVISIBLE
from capdex_engine.errors import DocumentError

MAX_INDEX_BYTES: Final = 512 * 1024
"""Of an index; exactly this much passes."""
MAX_NAME: Final = 64
MAX_TITLE: Final = 256
MAX_DESCRIPTION: Final = 1024
MAX_CAPABILITY: Final = 256
MAX_URL: Final = 2048
"""Characters, like the others."""
SCHEME: Final = "skill://"
INDEX_URL: Final = "skill://index.json"
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CAPABILITY: Final = re.compile(r"""[^\s:<>&"'`]+(?::[^\s:<>&"'`]+)+""")
_URL: Final = re.compile(rf"{SCHEME}\S+")
_SPACE: Final = re.compile(r"\s+")


class SkillIndexError(DocumentError):
    """An index as a whole is of no use; ``location`` says whose."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One entry of an index, fit to be shown: on one line each, without invisible characters."""

    name: str
    """kebab-case, at most 64 characters."""
    description: str
    """At most 1,024 characters."""
    capability: str
    """What it is called by, exactly: ``skill:x``, ``plugin:a:b``."""
    url: str
    """``skill://…``, a resource of the server that has the index."""
    title: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as an index has it."""
        fields = {"name": self.name, "title": self.title or self.name, "description": self.description}
        return {**fields, "capability": self.capability, "url": self.url}


@dataclass(frozen=True, slots=True)
class Fault:
    """An entry that was dropped."""

    index: int
    """Its number in the index, from 0."""
    reason: str
    """Names the field; holds nothing of its value."""


@dataclass(frozen=True, slots=True)
class SkillIndex:
    """The good entries in the index's order, and the faults of the others."""

    skills: tuple[Skill, ...] = ()
    faults: tuple[Fault, ...] = ()

    def document(self) -> bytes:
        """Return the document of a catalog's source: an index of the good entries, and what was dropped."""
        entries = sorted(self.skills, key=lambda skill: skill.capability)
        dropped = [{"index": fault.index, "reason": fault.reason} for fault in self.faults]
        whole: dict[str, Any] = {"skills": [skill.to_json() for skill in entries]}
        return canonical({**whole, "dropped": dropped} if dropped else whole)


def read_index(data: bytes, *, location: str = INDEX_URL) -> SkillIndex:
    """Read an index; a bad entry is dropped and is in ``faults``.

    Args:
        data: JSON, UTF-8, of at most :data:`MAX_INDEX_BYTES`.
        location: Whose index it is, for errors.

    Raises:
        SkillIndexError: It is too large, no UTF-8, no JSON, or holds no list of skills.
    """
    skills: dict[str, Skill] = {}
    urls: set[str] = set()
    faults: list[Fault] = []
    for index, entry in enumerate(_entries(data, location)):
        problem = problem_of(entry)
        if problem is None:
            skill = _skill(entry)
            if skill.capability in skills or skill.url in urls:
                problem = "An entry before it has the same capability or url."
            else:
                skills[skill.capability] = skill
                urls.add(skill.url)
        if problem is not None:
            faults.append(Fault(index, problem))
    return SkillIndex(tuple(skills.values()), tuple(faults))


def problem_of(entry: Any) -> str | None:
    """Return what is wrong with an entry, all of it; None where it is good."""
    if not isinstance(entry, Mapping):
        return "It must be an object."
    found = [f"{field}: {rule}." for field, (rule, fits) in _RULES.items() if not fits(entry.get(field))]
    return " ".join(found) or None


def _entries(data: bytes, location: str) -> Iterable[Any]:
    if len(data) > MAX_INDEX_BYTES:
        raise SkillIndexError(
            f"The skill index is larger than {MAX_INDEX_BYTES // 1024} KiB. Its server must make it smaller.",
            location=location,
        )
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise SkillIndexError("The skill index is no UTF-8 text.", location=location) from None
    except (ValueError, RecursionError):
        raise SkillIndexError("The skill index is no valid JSON.", location=location) from None
    entries = value.get("skills") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise SkillIndexError("The skill index has no list 'skills'.", location=location)
    return entries


def _text(limit: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and len(value) <= limit and bool(_clean(value))


def _whole(limit: int, fits: Callable[[str], bool]) -> Callable[[Any], bool]:
    """Return a check for text that is used as it stands: nothing in it may be invisible."""
    return lambda value: (
        isinstance(value, str) and len(value) <= limit and not INVISIBLE.search(value) and fits(value)
    )


_RULES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "name": (
        f"must be kebab-case (a-z, 0-9, single hyphens between), at most {MAX_NAME} characters",
        _whole(MAX_NAME, lambda value: _NAME.fullmatch(value) is not None),
    ),
    "title": (
        f"must be text of at most {MAX_TITLE} characters where it is given",
        lambda value: value is None or (isinstance(value, str) and len(value) <= MAX_TITLE),
    ),
    "description": (f"must be text of 1 to {MAX_DESCRIPTION} characters", _text(MAX_DESCRIPTION)),
    # With its colon it is no name of an operation, without spaces no METHOD /path; and it is shown as it is.
    "capability": (
        f"must be text such as 'skill:x' or 'plugin:a:b', at most {MAX_CAPABILITY} characters, without "
        "spaces, quotes, angle brackets and ampersands",
        _whole(MAX_CAPABILITY, lambda value: _CAPABILITY.fullmatch(value) is not None),
    ),
    "url": (
        f"must start with {SCHEME} and have at most {MAX_URL} characters, without spaces",
        _whole(MAX_URL, lambda value: _URL.fullmatch(value) is not None),
    ),
}


def _skill(entry: Mapping[str, Any]) -> Skill:
    title = _clean(entry.get("title") or "") or entry["name"]
    return Skill(entry["name"], _clean(entry["description"]), entry["capability"], entry["url"], title)


def _clean(text: str) -> str:
    return _SPACE.sub(" ", INVISIBLE.sub("", text)).strip()
