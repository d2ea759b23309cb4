"""Documents that mean harm, made when they are needed; ``python hostile_documents.py NAME`` reads one.

The child process that reads one prints what became of it as JSON; the tests give it little time and memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

MADE: Final[dict[str, Callable[[], bytes | dict[str, bytes]]]] = {}
"""Name -> maker of the document, or of several files by path, the first being the root."""


def _hostile(
    maker: Callable[[], bytes | dict[str, bytes]],
) -> Callable[[], bytes | dict[str, bytes]]:
    MADE[maker.__name__] = maker
    return maker


def _document(**fields: Any) -> bytes:
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": {"/good": {"get": {"operationId": "good"}}},
    }
    for key, value in fields.items():
        whole[key] = {**whole[key], **value} if isinstance(whole.get(key), dict) else value
    return json.dumps(whole).encode()


def _bodied(schema: Any, **schemas: Any) -> bytes:
    body = {"content": {"application/json": {"schema": schema}}}
    paths = {"/bad": {"post": {"operationId": "bad", "requestBody": body}}}
    return _document(paths=paths, components={"schemas": schemas})


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@_hostile
def alias_bomb() -> bytes:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["openapi: 3.1.0", *lines, "paths: {}"]).encode()


@_hostile
def alias_bomb_of_merges() -> bytes:
    lines = ["m0: &m0 {k0: 1}"]
    lines += [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 50)}], k{n}: 1}}" for n in range(1, 400)]
    return "\n".join(["openapi: 3.1.0", *lines, "paths: {}"]).encode()


@_hostile
def deep_json() -> bytes:
    return _document(**{"x-deep": 0}).replace(b'"x-deep": 0', b'"x-deep": ' + b"[" * 10_000 + b"]" * 10_000)


@_hostile
def deep_flow_yaml() -> bytes:
    return b"openapi: 3.1.0\nx: " + b"{a: " * 10_000 + b"1" + b"}" * 10_000


@_hostile
def deep_block_yaml() -> bytes:
    return b"openapi: 3.1.0\nx:\n" + b"".join(b" " * (n + 1) + b"a:\n" for n in range(10_000))


@_hostile
def deep_sequence_yaml() -> bytes:
    return b"openapi: 3.1.0\nx:\n" + b"- " * 10_000 + b"1\n"


@_hostile
def deep_schema() -> bytes:
    schema: Any = {"type": "string"}
    for _ in range(150):
        schema = {"properties": {"a": schema}}
    return _bodied(schema)


@_hostile
def deep_all_of() -> bytes:
    schemas = {f"S{n}": {"allOf": [_ref(f"S{n + 1}"), {"required": [f"k{n}"]}]} for n in range(20_000)}
    return _bodied(_ref("S0"), **schemas, S20000={"type": "object"})


@_hostile
def quadratic_all_of() -> bytes:
    # Each schema composes all later ones: n * n / 2 references, 2 ** n paths.
    schemas = {f"S{n}": {"allOf": [_ref(f"S{m}") for m in range(n + 1, 300)]} for n in range(300)}
    return _bodied(_ref("S0"), **schemas)


@_hostile
def exponential_references() -> bytes:
    schemas = {
        f"S{n}": {
            "properties": {"a": _ref(f"S{n + 1}"), "b": _ref(f"S{n + 1}")},
            "allOf": [_ref(f"S{n + 1}")] * 2,
        }
        for n in range(60)
    }
    return _bodied(_ref("S0"), **schemas, S60={"type": "object"})


@_hostile
def exponential_all_of_with_read_only() -> bytes:
    schemas = {
        f"S{n}": {
            "required": [f"k{n}", f"r{n}"],
            "properties": {f"k{n}": {"type": "string"}, f"r{n}": {"type": "string", "readOnly": True}},
            "allOf": [_ref(f"S{n + 1}"), _ref(f"S{n + 2}")],
        }
        for n in range(300)
    }
    return _bodied(_ref("S0"), **schemas, S300={}, S301={})


@_hostile
def many_schemas_that_all_know_each_other() -> bytes:
    schemas = {f"S{n}": {"properties": {f"p{m}": _ref(f"S{m}") for m in range(200)}} for n in range(200)}
    paths = {
        f"/p{n}": {
            "post": {"requestBody": {"content": {"application/json": {"schema": _ref(f"S{n % 200}")}}}}
        }
        for n in range(2000)
    }
    return _document(paths=paths, components={"schemas": schemas})


@_hostile
def long_chain_of_references() -> bytes:
    schemas: dict[str, Any] = {f"S{n}": _ref(f"S{n + 1}") for n in range(20_000)}
    paths = {
        f"/p{n}": {"post": {"requestBody": {"content": {"application/json": {"schema": _ref(f"S{n}")}}}}}
        for n in range(2000)
    }
    return _document(paths=paths, components={"schemas": {**schemas, "S20000": {}}})


@_hostile
def one_large_cycle() -> bytes:
    schemas = {f"S{n}": {"properties": {"next": _ref(f"S{(n + 1) % 20_000}")}} for n in range(20_000)}
    return _bodied(_ref("S0"), **schemas)


@_hostile
def cyclic_path_items() -> bytes:
    paths = {
        "/a": {"$ref": "#/paths/~1b"},
        "/b": {"$ref": "#/paths/~1a"},
        "/c": {"$ref": "#/paths/~1c"},
        "/d": {"$ref": "#/paths/~1d/get"},
    }
    return _document(paths=paths)


@_hostile
def files_that_include_each_other() -> dict[str, bytes]:
    root = _document(paths={"/a": {"$ref": "b.json#/item"}, "/good2": {"$ref": "b.json#/fine"}})
    back = json.dumps({"item": {"$ref": "c.json#/item"}, "fine": {"get": {"operationId": "fine"}}}).encode()
    return {"/d/a.json": root, "/d/b.json": back, "/d/c.json": b'{"item": {"$ref": "b.json#/item"}}'}


@_hostile
def storm_of_files() -> dict[str, bytes]:
    schemas = {f"S{n}": {"$ref": f"f{n}.json#/x"} for n in range(12_000)}
    body = {"anyOf": [_ref(name) for name in schemas]}
    files = {f"/d/f{n}.json": b'{"x": {"type": "string"}}' for n in range(12_000)}
    return {"/d/a.json": _bodied(body, **schemas), **files}


@_hostile
def hundred_megabyte_text() -> bytes:
    text = "Reads a thing. " * (100 * 1024 * 1024 // 15)
    return _document(paths={"/bad": {"get": {"operationId": "bad", "description": text}}})


@_hostile
def hundred_megabyte_key() -> bytes:
    return _document(paths={"/bad" + "x" * (100 * 1024 * 1024): {"get": {}}})


@_hostile
def megabyte_names() -> bytes:
    long = "n" * (1024 * 1024)
    operation = {
        "operationId": long,
        "summary": long,
        "tags": [long],
        "parameters": [{"name": long, "in": "query", "description": long, "schema": {"type": "string"}}],
    }
    return _document(paths={"/bad": {"get": operation}, f"/{long}/{{{long}}}": {"get": {}}})


@_hostile
def markup_that_never_ends() -> bytes:
    texts = {
        "summary": "<" * 200_000,
        "description": "<!--" * 100_000 + "[" * 100_000 + "](" * 100_000 + "&" * 100_000 + " " * 300_000,
    }
    more = {"summary": "[" * 300_000 + "](a", "description": "<a " * 200_000 + "x" * 10}
    last = {"summary": "](" * 200_000, "description": "[a](b " * 100_000}
    return _document(paths={"/bad": {"get": texts, "put": more, "post": last}})


@_hostile
def millions_of_path_items() -> bytes:
    items = ",".join(f'"/p{n}":{{}}' for n in range(500_000))
    return _document().replace(b'"/good"', items.encode() + b',"/good"')


@_hostile
def many_operations_of_one_name() -> bytes:
    return _document(paths={f"/p{n}": {"get": {"operationId": "same"}} for n in range(50_000)})


@_hostile
def many_parameters() -> bytes:
    names = [{"name": f"p{n}", "in": "query", "required": True} for n in range(50_000)]
    return _document(paths={"/bad": {"get": {"operationId": "bad", "parameters": names}}})


@_hostile
def many_path_variables() -> bytes:
    path = "/" + "/".join(f"{{v{n}}}" for n in range(20_000))
    parameters = [{"name": f"v{n}", "in": "path", "required": True} for n in range(20_000)]
    return _document(paths={path: {"get": {"parameters": parameters}}, "/" + "{" * 500_000: {"get": {}}})


@_hostile
def huge_required_and_enum() -> bytes:
    names = [f"n{n}" for n in range(200_000)]
    return _bodied({"required": names, "properties": {"e": {"enum": names}, "c": {"const": names}}})


@_hostile
def huge_numbers() -> bytes:
    digits = "9" * 100_001
    schema = {"minimum": "@1", "maximum": "@2", "enum": ["@1"], "multipleOf": "@3", "maxLength": "@1"}
    text = _bodied({"properties": {"n": {"type": "integer", **schema}}}).decode()
    return text.replace('"@1"', digits).replace('"@2"', "1e999").replace('"@3"', "1e-999").encode()


@_hostile
def huge_numbers_in_yaml() -> bytes:
    digits = "9" * 100_001
    text = _bodied({"properties": {"n": {"minimum": 0, "maximum": 1, "multipleOf": 2}}}).decode()
    yaml = text.replace('"minimum": 0', f'"minimum": {digits}').replace('"maximum": 1', '"maximum": .inf')
    return ("# YAML\n" + yaml.replace('"multipleOf": 2', f'"multipleOf": 0x{"f" * 100_000}')).encode()


@_hostile
def not_a_number() -> bytes:
    text = _bodied({"properties": {"n": {"minimum": "@", "default": "@", "enum": ["@", "~", 1]}}}).decode()
    return text.replace('"@"', "NaN").replace('"~"', "-Infinity").encode()


@_hostile
def names_that_mean_something_elsewhere() -> bytes:
    odd = {
        name: {"type": "string"} for name in ("__proto__", "constructor", "toString", "__class__", "", "\0")
    }
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in odd if name]
    body = {"content": {"application/json": {"schema": {"properties": odd, "required": list(odd)}}}}
    schemas = {"__proto__": {"properties": {"constructor": _ref("__proto__")}}}
    paths = {
        "/bad": {"post": {"operationId": "__proto__", "parameters": parameters, "requestBody": body}},
        "/__proto__": {"get": {"operationId": "constructor"}},
        "/c": {"post": {"requestBody": {"content": {"application/json": {"schema": _ref("__proto__")}}}}},
    }
    return _document(paths=paths, components={"schemas": schemas})


@_hostile
def broken_characters() -> bytes:
    text = _document(
        paths={
            "/bad@": {
                "get": {
                    "operationId": "a@b",
                    "summary": "one@two",
                    "parameters": [{"name": "q@", "in": "query", "schema": {"enum": ["@"]}}],
                }
            }
        }
    ).decode()
    return text.replace("@", "\\ud800\\u0000\\u202e\\udb40\\udc41\\u200b\\u001b[31m").encode()


@_hostile
def patterns() -> bytes:
    bad = [
        "(a+)+$",
        "(a|a)*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(x{1000}){1000}",
        "((((x{99}){99}){99}){99}){99}",
        r"(.*)\1\1$",
        "(?<=a+)b",
        "(" * 3000 + ")" * 3000,
        "(?:" * 90 + "a?" + "){1,99}" * 90,
        "|".join("a" * n for n in range(3000)),
        "a{4294967295}",
        "[" * 100_000,
        "(a?)" * 20_000,
    ]
    properties = {f"p{n}": {"type": "string", "pattern": pattern} for n, pattern in enumerate(bad)}
    return _bodied({"properties": properties, "patternProperties": {pattern: {} for pattern in bad}})


@_hostile
def many_duplicate_keys() -> bytes:
    twice = ",".join(['"/p":{"get":{},"x-a":1}'] * 200_000)
    return _document().replace(b'"/good"', twice.encode() + b',"/good"')


@_hostile
def many_servers_and_variables() -> bytes:
    variables = {f"v{n}": {"default": "{v0}" * 10, "enum": ["a"] * 10} for n in range(20_000)}
    url = "https://" + "".join(f"{{v{n}}}" for n in range(20_000))
    return _document(servers=[{"url": url, "variables": variables}] * 20)


@_hostile
def many_security_alternatives() -> bytes:
    schemes = {f"s{n}": {"type": "apiKey", "in": "query", "name": f"k{n}"} for n in range(3000)}
    needed = [{f"s{m}": [] for m in range(n, 3000, 97)} for n in range(3000)]
    return _document(security=needed, components={"securitySchemes": schemes})


@_hostile
def body_properties_through_many_compositions() -> bytes:
    schemas = {f"S{n}": {"anyOf": [_ref(f"S{n + 1}")] * 60} for n in range(8)}
    return _bodied(_ref("S0"), **schemas, S8={"properties": {"a": {}}})


@_hostile
def swagger_of_many_parameters() -> bytes:
    parameters = {f"P{n}": {"name": f"p{n}", "in": "formData", "type": "string"} for n in range(3000)}
    used = [{"$ref": f"#/parameters/P{n}"} for n in range(3000)]
    paths = {
        f"/p{n}": {"post": {"consumes": ["application/x-www-form-urlencoded"], "parameters": used}}
        for n in range(30)
    }
    return json.dumps(
        {
            "swagger": "2.0",
            "host": "api.test",
            "paths": {**paths, "/good": {"get": {"operationId": "good"}}},
            "parameters": parameters,
        }
    ).encode()


def read(name: str) -> dict[str, Any]:
    """Read the document as capdex does, and everything that a catalog gives out about it."""
    from capdex_engine.catalog import Source, build_catalog
    from capdex_engine.errors import DocumentError

    made = MADE[name]()
    files = made if isinstance(made, dict) else {"/d/a.json": made}

    def retrieve(uri: str) -> bytes:
        if uri not in files:
            raise DocumentError("there is no such file.", location=uri)
        return files[uri]

    root = next(iter(files))
    catalog = build_catalog([Source("api", root, files[root])], retrieve=lambda _: retrieve)
    (report,) = catalog.report.sources
    shown = 0
    for operation in (*catalog.operations[:5], *catalog.kept_out[:5]):
        shown = max(shown, len(json.dumps(catalog.describe(operation))))
        json.dumps(catalog.arguments_schema(operation, with_body=True))
        json.dumps(dict(catalog.details(operation).responses))
    json.dumps(catalog.report.to_json())
    return {
        "error": None if report.error is None else report.error.payload()["error"],
        "operations": len(catalog.operations),
        "names": [operation.name for operation in catalog.operations[:5]],
        "keptOut": [operation.reason for operation in catalog.kept_out[:5]],
        "outside": len(catalog.kept_out),
        "warnings": len(report.warnings),
        "longest": shown,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(read(sys.argv[1])))
