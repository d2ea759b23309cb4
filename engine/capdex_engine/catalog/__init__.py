"""Documents -> operations: one immutable :class:`Catalog` with names, digests and schemas on demand.

:func:`build_catalog` reads each :class:`Source` into a store (in memory, or a mapped file of the cache
folder), applies its :class:`SourceSettings` and names everything.
"""

from capdex_engine.catalog.report import KeptOut, LoadReport, NotCallable, Remark, SourceReport
from capdex_engine.catalog.snapshot import Catalog, build_catalog
from capdex_engine.catalog.source import Source, SourceSettings

__all__ = [
    "Catalog",
    "KeptOut",
    "LoadReport",
    "NotCallable",
    "Remark",
    "Source",
    "SourceReport",
    "SourceSettings",
    "build_catalog",
]
