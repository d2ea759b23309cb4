"""A reference leads to one value in one file, or says why it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.documents import ReadOnly, References, folder_retrieve, parse_document, upgrade
from capdex_engine.documents import references as module
from capdex_engine.documents.pointer import pointer_of, tokens_of
from capdex_engine.documents.references import MAX_DEPTH, join
from capdex_engine.documents.shown import shown
from capdex_engine.errors import DocumentError

ROOT = "/docs/api.yaml"


def never(identity: str) -> bytes:
    raise AssertionError(f"nothing may be read, but {identity} was")


def shelf(**files: str):
    """A retrieve callable over files in memory; its ``read`` lists what was asked for."""
    read: list[str] = []

    def retrieve(identity: str) -> bytes:
        read.append(identity)
        name = identity.removeprefix("/docs/")
        if name not in files:
            raise DocumentError("no such file.")
        return files[name].encode()

    retrieve.read = read
    return retrieve


def refs_of(text: str, retrieve=never, base: str = ROOT) -> References:
    return References(upgrade(parse_document(text.encode())), base, retrieve)


def fault(refs: References, ref: str, base: str = ROOT) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        refs.resolve(ref, base)
    return caught.value


@pytest.mark.parametrize(
    ("ref", "pointer"),
    [
        ("#/paths/~1items~1%7Bid%7D/get", "/paths/~1items~1{id}/get"),
        ("#/paths/~1items~1{id}/get", "/paths/~1items~1{id}/get"),
        ("#/c/My%20Type~1v1~0x", "/c/My Type~1v1~0x"),
        ("#/c/List%5BInt%5D", "/c/List[Int]"),
        ("#/c/200", "/c/200"),
        ("#/c/list/1", "/c/list/1"),
        ("#/c/%7E1", "/c/~1"),
        ("#%2Fc%2F200", "/c/200"),
        ("api.yaml#/c/200", "/c/200"),
        ("./api.yaml#/c/200", "/c/200"),
        ("#/c/", "/c/"),
        ("#", ""),
        ("", ""),
    ],
)
def test_a_fragment_is_percent_decoded_first_and_then_unescaped(ref, pointer):
    refs = refs_of(
        "openapi: 3.0.4\npaths: {'/items/{id}': {get: {x: 1}}}\n"
        "c: {'My Type/v1~x': {x: 1}, 'List[Int]': {x: 1}, 200: "
        "{x: 1}, list: [{}, {x: 1}], /: {x: 1}, '': {x: 1}}\n"
    )
    found = refs.resolve(ref, ROOT)
    assert (found.base, found.pointer) == (ROOT, pointer)
    assert pointer == "" or found.value == {"x": 1}


@pytest.mark.parametrize(
    "ref",
    [
        "#/nope",
        "#/list/7",
        "#/list/-",
        "#/list/x",
        "#/list/01x",
        "#/word/x",
        "#/none/x",
        "#anchor",
        "#/list/99999999999999999999",
        "#/list/²",
    ],
)
def test_a_dangling_reference_names_itself(ref):
    assert fault(refs_of("list: [1]\nword: text\nnone: null\n"), ref).details["pointer"] == ref


def test_references_to_references_are_followed_to_the_end():
    refs = refs_of("a: {$ref: '#/b'}\nb: {$ref: '#/c', description: why, x-y: 1}\nc: {type: string}\n")
    found = refs.resolve("#/a", ROOT)
    assert (found.value, found.pointer) == ({"type": "string"}, "/c")


def test_a_reference_with_siblings_of_meaning_is_an_end():
    refs = refs_of("a: {$ref: '#/b', nullable: true}\nb: {type: string}\n")
    assert refs.resolve("#/a", ROOT).pointer == "/a"


@pytest.mark.parametrize("text", ["a: {$ref: '#/a'}", "a: {$ref: '#/b'}\nb: {$ref: '#/c'}\nc: {$ref: '#/b'}"])
def test_a_cycle_of_plain_references_is_an_error(text):
    assert "back to itself" in fault(refs_of(text), "#/a").message


def test_an_endless_chain_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_HOPS", 10)
    text = "".join(f"a{n}: {{$ref: '#/a{n + 1}'}}\n" for n in range(20)) + "a20: 1\n"
    fault(refs_of(text), "#/a0")
    assert refs_of(text).resolve("#/a12", ROOT).value == 1


def test_a_relative_reference_is_relative_to_the_file_that_holds_it():
    retrieve = shelf(
        **{
            "schemas/pet.yaml": "Pet: {owner: {$ref: '../common.yaml#/Owner'}, self: {$ref: '#/Pet'}}",
            "common.yaml": "Owner: {name: o}",
        }
    )
    refs = refs_of("a: {$ref: 'schemas/pet.yaml#/Pet'}", retrieve)
    pet = refs.resolve("#/a", ROOT)
    assert (pet.base, pet.pointer) == ("/docs/schemas/pet.yaml", "/Pet")
    assert refs.resolve(pet.value["owner"]["$ref"], pet.base).value == {"name": "o"}
    assert refs.resolve(pet.value["self"]["$ref"], pet.base) == pet


def test_a_file_is_read_once_even_when_it_is_refused():
    retrieve = shelf(**{"b.yaml": "x: 1\ny: 2"})
    refs = refs_of("a: 1", retrieve)
    assert refs.resolve("b.yaml#/x", ROOT).value == 1
    assert refs.resolve("./b.yaml#/y", ROOT).value == 2
    fault(refs, "c.yaml#/x")
    fault(refs, "c.yaml#/x")
    assert retrieve.read == ["/docs/b.yaml", "/docs/c.yaml"]


def test_without_retrieve_no_other_file_is_allowed():
    refs = refs_of("a: {$ref: 'b.yaml'}", None)
    assert fault(refs, "#/a").details["pointer"] == "b.yaml"
    with pytest.raises(DocumentError):
        refs.tree("/docs/b.yaml")


def test_a_broken_sibling_is_a_fault_of_the_reference_only():
    refs = refs_of("a: {x: 1}", shelf(**{"b.yaml": "[", "c.json": "[1]"}))
    assert fault(refs, "b.yaml#/x").details == {"location": ROOT, "pointer": "b.yaml#/x"}
    fault(refs, "c.json#/0")
    assert refs.resolve("#/a", ROOT).value == {"x": 1}


def test_files_are_bounded_in_number_and_in_bytes(monkeypatch):
    retrieve = shelf(**{f"{n}.yaml": "x: 1" for n in range(9)})
    monkeypatch.setattr(module, "MAX_FILES", 3)
    refs = refs_of("a: 1", retrieve)
    assert [refs.resolve(f"{n}.yaml#/x", ROOT).value for n in range(2)] == [1, 1]
    fault(refs, "5.yaml#/x")
    monkeypatch.setattr(module, "MAX_FILES", 100)
    monkeypatch.setattr(module, "MAX_BYTES", 6)
    refs = refs_of("a: 1", retrieve)
    assert refs.resolve("0.yaml#/x", ROOT).value == 1
    fault(refs, "1.yaml#/x")


def test_anchors_and_ids_name_places():
    text = (
        "openapi: 3.1.1\ncomponents:\n  schemas:\n"
        "    A: {$anchor: here, x: 1}\n    B: {$dynamicAnchor: there, x: 2}\n"
        "    C: {$id: 'https://schemas.test/c', properties: {x: {y: 3}}}\n    D: {$id: other.json, x: 4}\n"
    )
    refs = refs_of(text)
    assert refs.resolve("#here", ROOT).pointer == "/components/schemas/A"
    assert refs.resolve("#there", ROOT).value["x"] == 2
    assert refs.resolve("https://schemas.test/c#/properties/x", ROOT).value == {"y": 3}
    assert refs.resolve("other.json", ROOT).value["x"] == 4


@pytest.mark.parametrize(
    ("base", "ref", "whole"),
    [
        ("/d/api.yaml", "b.yaml", "/d/b.yaml"),
        ("/d/e/api.yaml", "../b%20c.yaml", "/d/b c.yaml"),
        ("/d/api.yaml", "../../../etc/x", "/etc/x"),
        ("/d/api.yaml", "https://h/x", "https://h/x"),
        ("/d/api.yaml", "file:///etc/x", "file:///etc/x"),
        ("/d/api.yaml", "//h/x", "//h/x"),
        ("https://h/d/api.yaml", "b.yaml", "https://h/d/b.yaml"),
        ("https://h/d/api.yaml", "/b.yaml", "https://h/b.yaml"),
        ("https://h/d/api.yaml", "//g/b.yaml", "https://g/b.yaml"),
        ("https://h/d/api.yaml", "file:///etc/x", "file:///etc/x"),
        ("", "b.yaml", "b.yaml"),
    ],
)
def test_references_join_like_urls_and_like_paths(base, ref, whole):
    assert join(base, ref) == whole


def test_places_that_swagger_2_moved_are_found_in_sibling_files():
    common = (
        "swagger: '2.0'\ninfo: {}\npaths: {/x: {get: {responses: {200: {schema: {type: object}}}}}}\n"
        "definitions: {P: {type: string}}\nparameters: {Q: {name: q, in: query, type: integer}}\n"
        "responses: {R: {description: r}}\n"
    )
    refs = refs_of("swagger: '2.0'\npaths: {}", shelf(**{"common.yaml": common}))
    assert refs.resolve("common.yaml#/definitions/P", ROOT).pointer == "/components/schemas/P"
    assert refs.resolve("common.yaml#/parameters/Q", ROOT).value["schema"] == {"type": "integer"}
    assert refs.resolve("common.yaml#/responses/R", ROOT).value == {"description": "r"}
    moved = refs.resolve("common.yaml#/paths/~1x/get/responses/200/schema", ROOT)
    assert moved.value == {"type": "object"}


def test_fragment_files_of_a_swagger_2_document_are_upgraded_too():
    root = "swagger: '2.0'\nconsumes: [text/plain]\npaths: {/x: {$ref: paths/x.yaml}}"
    files = {
        "paths/x.yaml": (
            "post:\n  parameters:\n    - {name: b, in: body, schema: {$ref: '../defs.yaml#/B'}}\n"
            "    - {$ref: '../more.yaml#/parameters/Q'}\n"
            "  responses: {200: {$ref: '../more.yaml#/responses/R'}}\n"
        ),
        "defs.yaml": "B: {type: object, properties: {f: {type: file}, responses: {type: string}}}",
        "more.yaml": (
            "parameters: {Q: {name: q, in: query, type: array, "
            "items: {type: string}, collectionFormat: pipes}}\n"
            "responses: {R: {description: r, schema: {type: string}}}\n"
        ),
    }
    refs = refs_of(root, shelf(**files))
    item = refs.resolve(refs.tree(ROOT)["paths"]["/x"]["$ref"], ROOT)
    body = item.value["post"]["requestBody"]
    assert body["content"] == {"text/plain": {"schema": {"$ref": "../defs.yaml#/B"}}}
    query = refs.resolve(item.value["post"]["parameters"][0]["$ref"], item.base).value
    assert (query["style"], query["explode"], query["schema"]["type"]) == ("pipeDelimited", False, "array")
    response = refs.resolve(item.value["post"]["responses"]["200"]["$ref"], item.base).value
    assert response["content"] == {"application/json": {"schema": {"type": "string"}}}
    assert refs.resolve("defs.yaml#/B", ROOT).value["properties"]["f"] == {
        "type": "string",
        "format": "binary",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret: 1")
    inside = tmp_path / "docs"
    inside.mkdir()
    (inside / "a b.yaml").write_text("x: 1")
    (inside / "link.yaml").symlink_to(tmp_path / "secret.txt")
    (inside / "fine.yaml").symlink_to(inside / "a b.yaml")
    (inside / "loop.yaml").symlink_to(inside / "loop.yaml")
    return inside


def test_a_folder_gives_what_lies_inside_it(folder):
    retrieve = folder_retrieve(folder)
    for identity in (f"{folder}/a b.yaml", f"file://{folder}/a%20b.yaml", f"{folder}/fine.yaml"):
        assert retrieve(identity) == b"x: 1"


@pytest.mark.parametrize(
    "identity",
    [
        "{}/../secret.txt",
        "{}/link.yaml",
        "{}/loop.yaml",
        "{}/missing.yaml",
        "{}/\0",
        "{}",
        "/etc/passwd",
        "file:///etc/passwd",
        "file://{}/%2e%2e/secret.txt",
        "file://otherhost{}/a%20b.yaml",
        "http://127.0.0.1/a.yaml",
        "https://h/a.yaml",
        "ftp://h/a",
        "data:text/plain,x",
        "//h/a.yaml",
        "a b.yaml",
        "",
    ],
)
def test_a_folder_refuses_everything_else(folder, identity):
    with pytest.raises(DocumentError):
        folder_retrieve(folder)(identity.replace("{}", str(folder)))


def test_a_folder_has_a_bound_on_bytes_and_reads_no_pipes(folder):
    assert folder_retrieve(folder, max_bytes=4)(f"{folder}/a b.yaml") == b"x: 1"
    with pytest.raises(DocumentError):
        folder_retrieve(folder, max_bytes=3)(f"{folder}/a b.yaml")
    os.mkfifo(folder / "pipe")
    with pytest.raises(DocumentError):
        folder_retrieve(folder)(f"{folder}/pipe")


def test_messages_name_files_without_the_folders_of_this_machine(folder):
    refs = refs_of("a: 1", folder_retrieve(folder), f"{folder}/api.yaml")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.yaml").write_text("x: 1")
    for ref in ("sub/b.yaml#/y", "#/nope", "none.yaml#/x", "../secret.txt", "file:///etc/x", "http://h/x"):
        with pytest.raises(DocumentError) as caught:
            refs.resolve(ref, f"{folder}/api.yaml")
        assert str(folder.parent) not in caught.value.message
    with pytest.raises(DocumentError) as caught:
        refs.resolve("sub/b.yaml#/y", f"{folder}/api.yaml")
    assert "in sub/b.yaml" in caught.value.message


@pytest.mark.parametrize(
    ("identity", "root", "name"),
    [
        ("/a/b/c.yaml", "/a/api.yaml", "b/c.yaml"),
        ("/a/../c.yaml", "/a/api.yaml", "c.yaml"),
        ("/z/c.yaml", "/a/api.yaml", "c.yaml"),
        ("/c.yaml", "/api.yaml", "c.yaml"),
        ("/z/c.yaml", "", "c.yaml"),
        ("https://h.test/v/s/c.yaml", "https://h.test/v/api.yaml", "s/c.yaml"),
        ("https://10.0.0.1/v/c.yaml?k=v/w#x", "/a/api.yaml", "c.yaml"),
        ("https://10.0.0.1", "/a/api.yaml", "another file"),
        ("http://[bad", "/a/api.yaml", "another file"),
    ],
)
def test_a_file_is_shown_by_its_name(identity, root, name):
    assert shown(identity, root) == name


def test_what_a_schema_demands_is_seen_through_references_but_for_its_own_read_only_names():
    refs = refs_of(
        "a: {required: [x, 1], allOf: [{$ref: '#/b'}]}\nb: {required: [y], properties: {x: {readOnly: true}}}"
    )
    assert ReadOnly(refs, ROOT).demanded({"$ref": "#/a"}) == {"1", "y"}


def test_read_only_is_seen_through_references_and_all_of():
    refs = refs_of(
        "a: {$ref: '#/b', title: x}\nb: {allOf: [{$ref: '#/c'}]}\n"
        "c: {readOnly: true}\nd: {allOf: [{$ref: '#/d'}]}\n"
        "e: {allOf: [{properties: {x: {$ref: '#/a'}}}, {properties: "
        "{y: {}}}], properties: {z: {readOnly: true}}}\n"
    )
    read_only = ReadOnly(refs, ROOT)
    assert read_only({"$ref": "#/a"})
    assert not any(map(read_only, [{"$ref": "#/d"}, {"$ref": "#/nope"}, {}, True, None, {"allOf": 3}]))
    assert read_only.names({"$ref": "#/e"}) == {"x", "z"}


def test_read_only_follows_references_from_the_file_they_stand_in():
    files = {"sub/b.yaml": "B: {properties: {x: {$ref: '#/C'}}}\nC: {readOnly: true}"}
    refs = refs_of("C: {type: string}", shelf(**files))
    assert ReadOnly(refs, ROOT).names({"allOf": [{"$ref": "sub/b.yaml#/B"}]}) == {"x"}


@given(st.lists(st.text()))
def test_a_pointer_made_of_tokens_gives_them_back(tokens):
    assert tokens_of(pointer_of(tokens)) == tokens


def test_a_chain_of_files_ends_at_its_limit():
    def retrieve(uri: str) -> bytes:
        number = int(uri.removeprefix("/d/").removesuffix(".json"))
        return f'{{"next": {{"$ref": "{number + 1}.json#/next"}}, "here": {number}}}'.encode()

    references = References({}, "/d/0.json", retrieve)
    for number in range(1, MAX_DEPTH + 1):
        assert references.resolve(f"{number}.json#/here", f"/d/{number - 1}.json").value == number
    with pytest.raises(DocumentError, match="files away"):
        references.resolve(f"{MAX_DEPTH + 1}.json#/here", f"/d/{MAX_DEPTH}.json")
