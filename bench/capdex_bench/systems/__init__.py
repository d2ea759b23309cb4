"""Systems under test, as plain functions.

``build(operations, context) -> search``, and ``search(text, k) -> [(key, score), ...]``, best
first and at most ``k``; what scores nothing is left out. A new system is one entry in
:data:`SYSTEMS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from capdex_engine.errors import ConfigurationError

from .base import Build, Context, Found, Search
from .engine import ABLATIONS, build_capdex
from .fused import build_blend, build_rrf
from .keyword import build_keyword
from .lexical import build_bm25
from .minilm import build_minilm

SYSTEMS: Final[Mapping[str, Build]] = {
    "keyword": build_keyword,
    "bm25": build_bm25,
    "minilm": build_minilm,
    "blend": build_blend,
    "rrf": build_rrf,
    "capdex": build_capdex,
}
"""Our own systems, simplest first; ``capdex`` is the production ranker."""

__all__ = ["ABLATIONS", "SYSTEMS", "Build", "Context", "Found", "Search", "find_systems"]


def find_systems(names: Sequence[str]) -> dict[str, Build]:
    """Return the named systems (ablations too), in the order asked for.

    Raises:
        ConfigurationError: For an unknown name.
    """
    known = {**SYSTEMS, **ABLATIONS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigurationError(f"no system {unknown[0]!r}: know {', '.join(known)}")
    return {name: known[name] for name in names}
