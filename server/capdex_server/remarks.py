"""What the configuration says that fits nothing in the documents: most likely a slip of the pen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from capdex_engine.catalog import Catalog
from capdex_engine.operation import Operation

MAX_LOOKED_AT: Final = 2000
"""Operations of one source that are searched for a security scheme; reading more takes too long."""
_ON_SETTINGS: Final = ("The pattern ", "The override ", "`server_variables` ")
"""How the engine's remarks on settings begin; its others are on the document."""
Remark = tuple[str, str]
"""Configured source, and what has no use in its documents."""


def remarks_on(
    catalog: Catalog, owners: Mapping[str, str], credentials: Mapping[str, Iterable[str]]
) -> tuple[Remark, ...]:
    """Return a remark for each setting and credential without a use.

    Args:
        catalog: What was loaded.
        owners: Engine source -> configured source. What one document of a folder has a use for is no slip.
        credentials: Configured source -> security schemes for which one is given.
    """
    found: list[Remark] = []
    for source, remarks in _settings(catalog, owners).items():
        found += [(source, remark) for remark in sorted(remarks)]
    wanted = {source: set(schemes) for source, schemes in credentials.items() if schemes}
    if wanted:
        found += _schemes(catalog, owners, wanted)
    return tuple(found)


def _settings(catalog: Catalog, owners: Mapping[str, str]) -> dict[str, set[str]]:
    remarks: dict[str, set[str]] = {}
    for report in catalog.report.sources:
        if report.error is None:
            texts = (warning.message for warning in report.warnings if not warning.pointer)
            own = {text for text in texts if text.startswith(_ON_SETTINGS)}
            owner = owners.get(report.source, report.source)
            remarks[owner] = remarks[owner] & own if owner in remarks else own
    return remarks


def _schemes(catalog: Catalog, owners: Mapping[str, str], wanted: Mapping[str, set[str]]) -> Iterator[Remark]:
    by_owner: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in catalog.operations:
        by_owner[owners.get(operation.source, operation.source)].append(operation)
    for source, schemes in wanted.items():
        operations = by_owner[source]
        if 0 < len(operations) <= MAX_LOOKED_AT:
            known = _known(catalog, operations, schemes)
            yield from ((source, _no_scheme(name, known)) for name in sorted(schemes - known))


def _known(catalog: Catalog, operations: Sequence[Operation], wanted: set[str]) -> set[str]:
    """Return the schemes that operations use, or as many as it takes to know those wanted."""
    known: set[str] = set()
    for operation in operations:
        for alternative in catalog.details(operation).security:
            known.update(alternative)
        if wanted <= known:
            break
    return known


def _no_scheme(name: str, known: set[str]) -> str:
    has = ", ".join(sorted(known)) or "none"
    return f"credential {name}: no scheme of that name is in use; the document has: {has}"
