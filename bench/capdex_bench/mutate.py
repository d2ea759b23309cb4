"""Documents made wrong: changes to a tree, to its text, and arguments for what is left of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import yaml

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**50,
    "",
    " ",
    "text",
    "null",
    "#/nowhere",
    "é\u202e\x00",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": {}},
    {"a": None},
    {"$ref": 5},
    {"$ref": ""},
    {"$ref": "#"},
    {"$ref": "#/paths"},
    {"$ref": "other.yaml#/components"},
    {"$ref": "#/%7e%2"},
    {"type": ["string", "nothing"]},
    {"type": "object", "required": "a"},
)
"""Values that stand where they should not."""
KEYS: Final = (
    "$ref",
    "type",
    "items",
    "properties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "enum",
    "const",
    "required",
    "nullable",
    "readOnly",
    "in",
    "name",
    "schema",
    "content",
    "parameters",
    "requestBody",
    "servers",
    "security",
    "get",
    "post",
    "style",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "discriminator",
    "$id",
    "$anchor",
    "$dynamicRef",
    "$defs",
    "if",
    "swagger",
    "openapi",
    "paths",
    "webhooks",
    "callbacks",
    "x-capdex-duplicates",
    "__proto__",
)
"""Keys that mean something somewhere."""
BYTES: Final = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b": ",
    b"\n- ",
    b"&a ",
    b"*a",
    b"<<: ",
    b'"',
    b"\t",
    b"\\ud800",
    b"9" * 5000,
)
MAX_PATHS: Final = 8
"""Path items that are kept of one document."""
_Place = tuple[Any, ...]


def pruned(tree: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a copy with a few of the path items, and the components that they reach."""
    paths = tree.get("paths")
    if not isinstance(paths, dict):
        return copy.deepcopy(tree)
    names = random.sample(list(paths), min(MAX_PATHS, len(paths)))
    kept = {**tree, "paths": {name: paths[name] for name in names}}
    for home in ("components", "definitions", "parameters", "responses"):
        kept.pop(home, None)
    pending = list(_references(kept))
    wanted: set[_Place] = set()
    while pending:
        place = tuple(pending.pop().lstrip("#/").split("/"))
        if place not in wanted and (found := _at(tree, place)) is not None:
            wanted.add(place)
            pending.extend(_references(found))
    for place in sorted(wanted):
        _put(kept, place, _at(tree, place))
    if isinstance(tree.get("components"), dict) and "securitySchemes" in tree["components"]:
        _put(kept, ("components", "securitySchemes"), tree["components"]["securitySchemes"])
    return copy.deepcopy(kept)


def change(tree: Any, random: Random) -> Any:
    """Make one to six changes to the tree, in place, and return it."""
    for _ in range(random.randint(1, 6)):
        places = list(_places(tree))
        if not places:
            break
        place = random.choice(places)
        random.choice(CHANGES)(tree, place, places, random)
    return tree


def written(tree: Any, random: Random) -> bytes:
    """Return the tree as JSON or YAML."""
    if random.random() < 0.6:
        return json.dumps(tree, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(tree, Dumper=dumper, sort_keys=False, default_flow_style=None, allow_unicode=True)
    return text.encode("utf-8", "surrogatepass")


def scratched(data: bytes, random: Random) -> bytes:
    """Return the text with one to four places changed, whatever they are."""
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice((0, 1, 1, 2, 10, 200)))
        middle = random.choice((b"", data[at:to] * 2, random.choice(BYTES), random.randbytes(2)))
        data = data[:at] + middle + data[to:]
    return data


def sample(schema: Any, definitions: dict[str, Any], random: Random, depth: int = 0) -> Any:
    """Return a value that may fit the schema, and may not."""
    if depth > 6 or not isinstance(schema, dict) or random.random() < 0.05:
        return copy.deepcopy(random.choice(ODD))
    if isinstance(ref := schema.get("$ref"), str):
        return sample(definitions.get(ref.rpartition("/")[2]), definitions, random, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if schema.get(keyword):
            return sample(random.choice(schema[keyword]), definitions, random, depth + 1)
    if schema.get("enum"):
        return random.choice(schema["enum"])
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = random.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "object":
        members = schema.get("properties", {})
        return {name: sample(child, definitions, random, depth + 1) for name, child in members.items()}
    if kind == "array":
        return [
            sample(schema.get("items"), definitions, random, depth + 1) for _ in range(random.randint(0, 3))
        ]
    return {"integer": 3, "number": 0.5, "boolean": True, "null": None}.get(kind, "2020-01-02")


def _references(node: Any) -> Iterator[str]:
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if isinstance(ref := each.get("$ref"), str) and ref.startswith("#/"):
                yield ref
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def _at(tree: Any, place: _Place) -> Any:
    for key in place:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _put(tree: dict[str, Any], place: _Place, value: Any) -> None:
    for key in place[:-1]:
        inner = tree.get(key)
        tree[key] = tree = dict(inner) if isinstance(inner, dict) else {}
    tree[place[-1]] = value


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (collection, key) of everything below the root."""
    pending = [tree]
    while pending:
        node = pending.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            yield node, key
            pending.append(node[key])


_Change = Callable[[Any, tuple[Any, Any], list[tuple[Any, Any]], Random], None]


def _drop(_: Any, place: tuple[Any, Any], __: Any, random: Random) -> None:
    node, key = place
    del node[key]


def _retype(_: Any, place: tuple[Any, Any], __: Any, random: Random) -> None:
    node, key = place
    node[key] = copy.deepcopy(random.choice(ODD))


def _swap(_: Any, place: tuple[Any, Any], places: list[tuple[Any, Any]], random: Random) -> None:
    node, key = place
    other, there = random.choice(places)
    node[key] = copy.deepcopy(other[there])


def _nest(_: Any, place: tuple[Any, Any], __: Any, random: Random) -> None:
    node, key = place
    for _level in range(random.choice((1, 1, 3, 60))):
        word = random.choice(KEYS)
        node[key] = [node[key]] if random.random() < 0.3 else {word: node[key]}


def _refer(tree: Any, place: tuple[Any, Any], places: list[tuple[Any, Any]], random: Random) -> None:
    node, key = place
    known = list(_references(tree)) or ["#/paths"]
    beside = {"description": "d"} if random.random() < 0.3 else {}
    file = random.choice(("", "", "", "other.yaml", "../x/y.json"))
    node[key] = {"$ref": file + random.choice((*known, "#/nowhere", "#")), **beside}


def _rename(_: Any, place: tuple[Any, Any], __: Any, random: Random) -> None:
    node, key = place
    if isinstance(node, dict):
        node[random.choice((*KEYS, f"{key}é", str(key) * 40))] = node.pop(key)


def _add(_: Any, place: tuple[Any, Any], places: list[tuple[Any, Any]], random: Random) -> None:
    node, _key = place
    other, there = random.choice(places)
    value = copy.deepcopy(random.choice((other[there], *ODD)))
    if isinstance(node, dict):
        node[random.choice(KEYS)] = value
    else:
        node.insert(0, value)


CHANGES: Final[tuple[_Change, ...]] = (_drop, _retype, _retype, _swap, _nest, _refer, _rename, _add)
"""What one change may be."""
