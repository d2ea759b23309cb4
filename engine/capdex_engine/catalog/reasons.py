"""The reasons of a load report, alike ones together: what thousands of documents suffer from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capdex_engine.catalog.report import LoadReport, SourceReport

BLANK: Final = "…"
"""Stands for what differs between reasons that are alike."""
_DIFFERING: Final = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s;]+"), BLANK),
    (re.compile(r"'[^'\n]*'"), f"'{BLANK}'"),
    (re.compile(r"CAPDEX_CREDENTIAL_\w+"), f"CAPDEX_CREDENTIAL_{BLANK}"),
    (re.compile(r"--credential \S+=VALUE"), f"--credential {BLANK}=VALUE"),
    (re.compile(r" \(and for [^)]*\)"), ""),
    (re.compile(r"\bvariables .+? are not\b"), f"variables {BLANK} are not"),
    (re.compile(r"\bparameters .+? do not\b"), f"parameters {BLANK} do not"),
    (re.compile(r"\b([Pp])arameter .*? (is|has)\b"), rf"\1arameter {BLANK} \2"),
    (re.compile(r"\breference \S+ "), f"reference {BLANK} "),
    (re.compile(r"\b(to nothing) in \S+"), rf"\1 in {BLANK}"),
    (re.compile(r"\bserver \S+ (?=needs|has)"), f"server {BLANK} "),
    (re.compile(r"(: |; )[^:;]*? (?=is a relative URL|is no http)"), rf"\1{BLANK} "),
    (re.compile(r"\S*/\S+\.(?:json|ya?ml)\b"), BLANK),
    (re.compile(r"\b\d[\d,.]*\b(?!\.0 document|\.x)"), BLANK),
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, and how often it stands in a report."""

    what: str
    """``document unusable``, ``operation kept out``, ``left out by settings``, ``webhook``, ``callback``,
    ``not callable yet`` or ``warning``."""
    text: str
    """With ``…`` in place of names and numbers."""
    count: int
    """Documents, operations or warnings, by ``what``."""
    documents: int
    example: str
    """Location (and pointer or name) of the first one."""

    def to_json(self) -> dict[str, Any]:
        """Return ``{"what", "reason", "count", "documents", "example"}``."""
        return {
            "what": self.what,
            "reason": self.text,
            "count": self.count,
            "documents": self.documents,
            "example": self.example,
        }


def group_reasons(report: LoadReport) -> list[Reason]:
    """Return the reasons of a report, worst kind first, then the most frequent."""
    counts: dict[tuple[str, str], list[Any]] = {}
    for source in report.sources:
        seen: set[tuple[str, str]] = set()
        for what, text, count, place in _entries(source):
            key = (what, generalised(text))
            row = counts.setdefault(key, [0, 0, f"{source.location}{place}"])
            row[0] += count
            row[1] += key not in seen
            seen.add(key)
    found = [Reason(*key, *row) for key, row in counts.items()]
    return sorted(found, key=lambda reason: (_KINDS.index(reason.what), -reason.count, reason.text))


def generalised(text: str) -> str:
    """Return a reason with ``…`` for the names, numbers and places in it."""
    for pattern, blank in _DIFFERING:
        text = pattern.sub(blank, text)
    return text


_KINDS: Final = (
    "document unusable",
    "operation kept out",
    "not callable yet",
    "left out by settings",
    "webhook",
    "callback",
    "warning",
)


def _entries(source: SourceReport) -> Iterator[tuple[str, str, int, str]]:
    if source.error is not None:
        yield "document unusable", source.error.message, 1, ""
    for entry in source.kept_out:
        kind = "operation kept out" if entry.is_broken else entry.kind
        what = "left out by settings" if entry.by_settings else kind
        yield what, entry.reason, 1, f"#{entry.pointer}"
    for group in source.not_callable:
        yield "not callable yet", group.reason, len(group.names), f" {group.names[0]}"
    for remark in source.warnings:
        yield "warning", remark.message, 1, f"#{remark.pointer}" if remark.pointer else ""
