"""Finding every operation of a document, and what must stay outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from capdex_engine.catalog.context import Reading, plain_child
from capdex_engine.catalog.parameters import TOKEN
from capdex_engine.catalog.report import KeptOut
from capdex_engine.documents import Resolved
from capdex_engine.errors import DocumentError

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
"""Fields of a path item that hold an operation."""
MAX_PATH: Final = 8000
"""Characters of a path template: what servers take of a request's first line."""
WEBHOOK_REASON: Final = "A webhook is a call that the API makes to its client."
CALLBACK_REASON: Final = "A callback is a call that the API makes to its client."


@dataclass(frozen=True, slots=True)
class Found:
    """One operation of a document.

    Args:
        method: Upper case; empty when the path item itself cannot be read.
        item: The path item that holds it.
        place: Where it stands, before references are followed.
        problem: Why it cannot be called, as far as its place tells.
        read_only_hint: Whether a tool says of itself that it changes nothing.
    """

    method: str
    path: str
    item: Resolved
    operation: Resolved
    place: Resolved
    problem: str | None = None
    read_only_hint: bool = False


def find_operations(reading: Reading) -> Iterator[Found]:
    """Yield every operation under ``paths``, in the document's order."""
    paths = reading.root("paths")
    if paths.value is None:
        return
    if not isinstance(paths.value, dict):
        reading.warn("`paths` is not an object; it is left out.", paths)
        return
    for path in paths.value:
        if not str(path).startswith("x-"):
            yield from _of_path(reading, str(path), plain_child(paths, path))


def find_outside(reading: Reading, operations: Iterable[Found]) -> Iterator[KeptOut]:
    """Yield the document's webhooks, and the callbacks of its operations."""
    webhooks = reading.root("webhooks")
    if isinstance(webhooks.value, dict):
        for name in webhooks.value:
            yield from _outside(reading, "webhook", WEBHOOK_REASON, str(name), plain_child(webhooks, name))
    for found in operations:
        yield from _callbacks(reading, found)


def _callbacks(reading: Reading, found: Found) -> Iterator[KeptOut]:
    callbacks = plain_child(found.operation, "callbacks")
    if not isinstance(callbacks.value, dict):
        return
    for name in callbacks.value:
        try:
            callback = reading.child(callbacks, name)
        except DocumentError as error:
            yield KeptOut("callback", "", str(name), error.message, reading.place(callbacks))
            continue
        for expression in callback.value if isinstance(callback.value, dict) else ():
            item = plain_child(callback, expression)
            yield from _outside(reading, "callback", CALLBACK_REASON, str(expression), item)


def _outside(reading: Reading, kind: str, reason: str, name: str, declared: Resolved) -> Iterator[KeptOut]:
    try:
        item = reading.follow(declared)
    except DocumentError as error:
        yield KeptOut(kind, "", name, error.message, reading.place(declared))
        return
    for method in METHODS:
        operation = plain_child(item, method)
        if isinstance(operation.value, dict):
            yield KeptOut(kind, method.upper(), name, reason, reading.place(operation))


def _of_path(reading: Reading, path: str, declared: Resolved) -> Iterator[Found]:
    try:
        item = _path_item(reading, declared)
    except DocumentError as error:
        yield Found("", path, declared, declared, declared, error.message)
        return
    if item.value is None:
        return
    if not isinstance(item.value, dict):
        yield Found("", path, declared, declared, declared, "The path item is not an object.")
        return
    problem = None if path.startswith("/") else "The path does not start with a slash."
    if len(path) > MAX_PATH:
        problem, path = f"The path is longer than {MAX_PATH} characters.", _cut(path)
    for method, place in _operations(reading, item):
        try:
            operation = reading.follow(place)  # an operation by reference is no OpenAPI, but common
        except DocumentError as error:
            yield Found(method, path, item, place, place, error.message)
        else:
            yield Found(method, path, item, operation, place, problem or _fault(method, operation))


def _cut(path: str) -> str:
    """Return a path of bounded length that stands for one that is too long, and for no other."""
    return f"{path[:100]}…{sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _path_item(reading: Reading, declared: Resolved) -> Resolved:
    """Return the path item, with fields beside a ``$ref`` in place of the target's."""
    item = reading.follow(declared)
    own = declared.value
    if item is declared or not isinstance(own, dict) or not isinstance(item.value, dict):
        return item
    beside = {key: value for key, value in own.items() if key != "$ref"}
    # Fields beside the reference would resolve against another file; only where it is the same one.
    if not beside or item.base != declared.base:
        return item
    return Resolved({**item.value, **beside}, item.base, item.pointer)


def _operations(reading: Reading, item: Resolved) -> Iterator[tuple[str, Resolved]]:
    seen: set[str] = set()
    for method, operation in _declared(item):
        if method in seen:
            reading.warn(f"There is a second operation {method} of this path; the first counts.", operation)
        elif operation.value is not None:
            seen.add(method)
            yield method, operation


def _declared(item: Resolved) -> Iterator[tuple[str, Resolved]]:
    """Yield method and operation; methods as OpenAPI spells them come first."""
    fields = [key for key in item.value if key.lower() in METHODS]
    for key in sorted(fields, key=lambda key: key != key.lower()):
        yield key.upper(), plain_child(item, key)
    more = plain_child(item, "additionalOperations")
    for key in more.value if isinstance(more.value, dict) else ():
        yield key.upper(), plain_child(more, key)


def _fault(method: str, operation: Resolved) -> str | None:
    if not isinstance(operation.value, dict):
        return "The operation is not an object."
    if not TOKEN.fullmatch(method):
        return f"{method!r} is no HTTP method."
    return None
