"""What a source's settings do to its operations: choose them, and cure their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

from capdex_engine.catalog.records import OperationRecord
from capdex_engine.catalog.source import SourceSettings
from capdex_engine.catalog.texts import MAX_SUMMARY, MAX_TAG, clean_text

KINDS: Final = frozenset({"tag", "path", "method", "name"})


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's own texts for one operation."""

    summary: str | None = None
    keywords: tuple[str, ...] = ()


class Choice:
    """Which operations of a source are offered; remembers which patterns matched anything."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._unused = {*settings.include, *settings.exclude}

    def refusal(self, record: OperationRecord, name: str) -> str | None:
        """Return why an operation is left out by the settings; ``None`` where it is offered."""
        settings = self._settings
        included = self._matching(settings.include, record, name)
        excluded = self._matching(settings.exclude, record, name)
        if settings.include and not included:
            return "Left out by the source's settings: no pattern of `include` matches."
        if excluded:
            return f"Left out by the source's settings: `exclude` has {excluded[0]!r}."
        if settings.hide_deprecated and record.deprecated:
            return "Left out by the source's settings: deprecated, and `hide_deprecated` is set."
        return None

    def remarks(self) -> list[str]:
        """Return a sentence for each pattern that has matched nothing."""
        return [f"The pattern {pattern!r} matches no operation." for pattern in sorted(self._unused)]

    def _matching(self, patterns: Iterable[str], record: OperationRecord, name: str) -> list[str]:
        found = [pattern for pattern in patterns if _matches(pattern, record, name)]
        self._unused.difference_update(found)
        return found


class Overrides:
    """The overrides of a source by operation; remembers which were used."""

    def __init__(self, overrides: Mapping[str, Mapping[str, Any]]) -> None:
        self._overrides = overrides
        self._unused = set(overrides)

    def of(self, record: OperationRecord) -> Override:
        """Return the texts for an operation; those under ``METHOD /path`` before its operationId's."""
        merged: dict[str, Any] = {}
        for key in (record.operation_id, record.key):
            if key is not None and key in self._overrides:
                self._unused.discard(key)
                merged.update(self._overrides[key])
        if not merged:
            return _NO_OVERRIDE
        keywords = merged.get("keywords") or ()
        words = [keywords] if isinstance(keywords, str) else keywords
        cleaned = [clean_text(word, MAX_TAG) for word in words]
        summary = clean_text(merged.get("summary"), MAX_SUMMARY)
        return Override(summary or None, tuple(word for word in cleaned if word))

    def remarks(self) -> list[str]:
        """Return a sentence for each override without an operation."""
        return [f"The override {key!r} names no operation." for key in sorted(self._unused)]


_NO_OVERRIDE: Final = Override()


def _matches(pattern: str, record: OperationRecord, name: str) -> bool:
    kind, separator, glob = pattern.partition(":")
    if not separator or kind not in KINDS:
        kind, glob = "name", pattern
    if kind == "method":
        return _glob(glob.upper()).match(record.method) is not None
    values = {"tag": record.tags, "path": (record.path,), "name": (name, record.operation_id or name)}[kind]
    return any(_glob(glob).match(value) for value in values)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
