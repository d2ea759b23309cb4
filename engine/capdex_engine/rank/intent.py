"""What a request wants done, read from its verbs: the HTTP methods and the shape of path that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.text import stem, words

_VERBS: Final[Mapping[str, str]] = {
    "create": (
        "create make add new open register issue post send submit publish upload start set insert "
        "generate build invite schedule book write place file import launch begin put spin"
    ),
    "read": (
        "get show see read fetch view look check find search list display retrieve return who what which "
        "how download export describe lookup browse inspect count query whats tell give watch monitor"
    ),
    "update": (
        "update change edit modify rename replace set adjust correct patch move turn switch mark assign "
        "enable disable configure extend alter reset amend"
    ),
    "delete": (
        "delete remove erase drop purge destroy clear discard trash rm kick revoke cancel void unlink "
        "detach withdraw unsubscribe unfollow unstar block dismiss"
    ),
}
_INTENTS: Final[Mapping[str, frozenset[str]]] = {
    intent: frozenset(stem(verb) for verb in verbs.split()) for intent, verbs in _VERBS.items()
}
_INTENTS_OF: Final[Mapping[str, list[str]]] = {
    verb: [intent for intent, verbs in _INTENTS.items() if verb in verbs]
    for verb in frozenset().union(*_INTENTS.values())
}
_MORE_VERBS: Final = (
    "accept access activate allow analyse analyze answer approve archive ask assess attach ban bring buy "
    "calculate capture choose clone close collect compare compute confirm connect convert copy decline "
    "deploy detect determine draft comment edit email encrypt ensure estimate evaluate examine execute "
    "explore extract filter flag follow fork forecast freeze gather grant hand hide identify implement "
    "inform initiate inspect join keep kill label link lock log mail manage map measure merge monitor "
    "notify obtain offer optimise optimize order organize pause pay perform pin plan play predict prepare "
    "print process promote propose provide pull push read receive recommend record refund release reload "
    "remind reply report request reserve resolve restart restore resume review roll save scan score share "
    "ship sign simulate sort star stop store subscribe suggest summarize swap sync tag take test track "
    "transfer translate trigger unarchive unban undo unlock unpin upgrade use validate verify"
)
REQUEST_VERBS: Final = frozenset(" ".join((*_VERBS.values(), _MORE_VERBS)).split())
"""Verbs that a request begins with, in their base form: *labels* is a thing, *label* may be a deed."""

_FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    "create": ("POST", "PUT"),
    "read": ("GET", "HEAD"),
    "update": ("PATCH", "PUT", "POST"),
    "delete": ("DELETE",),
}
METHODS: Final = ("", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""Methods by number; any other is number 0, of which no intent says anything."""
_MANY: Final = frozenset(stem(w) for w in ("list", "all", "every", "search", "find", "which", "browse"))


def method_numbers(operations: Sequence[Operation]) -> NDArray[np.int64]:
    """Return every operation's place in :data:`METHODS`, shape (n,)."""
    return np.array(
        [METHODS.index(o.method) if o.method in METHODS else 0 for o in operations], dtype=np.int64
    )


def method_agreement(query: str) -> NDArray[np.float32]:
    """Return how each of :data:`METHODS` suits the first verb: 1 suits, -1 does not, 0 nothing is known."""
    agreement = np.zeros(len(METHODS), dtype=np.float32)
    intents = _first_intents(query)
    if intents:
        fitting = {method for intent in intents for method in _FITTING[intent]}
        agreement[1:] = [1.0 if method in fitting else -1.0 for method in METHODS[1:]]
    return agreement


def wants_many(query: str) -> bool:
    """Return whether the request speaks of a collection."""
    return any(stem(word) in _MANY for word in words(query)[:8])


def _first_intents(query: str) -> list[str]:
    stems = map(stem, words(query)[:8])
    return next((_INTENTS_OF[one] for one in stems if one in _INTENTS_OF), [])
