from __future__ import annotations

import json

import pytest

from capdex_engine.catalog import Source, build_catalog
from capdex_engine.errors import DocumentError
from capdex_engine.operation import SecurityScheme
from capdex_server.config import DocumentLimits, OverrideConfig, SchemeConfig, SourceConfig
from capdex_server.credentials import DefaultCredentials, Secrets
from capdex_server.pieces import Piece
from capdex_server.reach import Retriever
from capdex_server.sources import load_sources

DOCUMENT = json.dumps({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}})


def load(config: SourceConfig, **options):
    options = {"fetched": {}, "secrets": Secrets(), "defaults": DefaultCredentials(["api"], {}), **options}
    return load_sources({"api": config}, **options)


def no_fetch(url: str, seconds: float, room: int) -> Piece:
    raise AssertionError(url)


def retriever(source, config, fetch=no_fetch, **limits):
    """What reads a document's references; its clock stands still."""
    return Retriever(source, config, fetch, limits=DocumentLimits(**limits), clock=lambda: 0.0)


def test_a_file_becomes_a_source_of_the_configured_name(tmp_path):
    (tmp_path / "x.json").write_text(DOCUMENT)
    loaded = load(SourceConfig(location=str(tmp_path / "x.json"), document_url="https://a.example/x.json"))
    (source,) = loaded.sources
    assert (source.name, source.data, source.document_url) == (
        "api",
        DOCUMENT.encode(),
        "https://a.example/x.json",
    )


def test_a_folder_gives_its_documents_and_leaves_fragments(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.json").write_text(DOCUMENT)
    (tmp_path / "sub" / "b.yaml").write_text("swagger: '2.0'\n")
    (tmp_path / "schemas.yaml").write_text("Order: {type: object}\n")
    (tmp_path / "notes.txt").write_text("openapi: 3")
    loaded = load(SourceConfig(location=str(tmp_path)))
    assert [source.name for source in loaded.sources] == ["api.a", "api.sub.b"]
    assert set(loaded.owners.values()) == {"api"}
    assert loaded.names == {"api.a": ("api.a", "api"), "api.sub.b": ("api.sub.b", "api")}
    assert loaded.skipped == {"api": [str(tmp_path / "schemas.yaml")]}


def test_a_folder_with_one_document_keeps_the_plain_name(tmp_path):
    (tmp_path / "a.json").write_text(DOCUMENT)
    loaded = load(SourceConfig(location=str(tmp_path)))
    assert [source.name for source in loaded.sources] == ["api"]
    assert loaded.names == {"api": ("api", "api.a")}


def test_a_name_that_another_source_has_is_no_second_name(tmp_path):
    (tmp_path / "a.json").write_text(DOCUMENT)
    configs = {"api": SourceConfig(location=str(tmp_path)), "api.a": SourceConfig(location="gone.json")}
    assert load_sources(configs, {}, Secrets(), DefaultCredentials(configs, {})).names["api"] == ("api",)


def test_a_variable_may_name_one_document_of_a_folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(DOCUMENT)
    environ = {"CAPDEX_CREDENTIAL_API_KEY": "all", "CAPDEX_CREDENTIAL_API_B_KEY": "mine"}
    loaded = load(SourceConfig(location=str(tmp_path)), defaults=DefaultCredentials(["api"], environ))
    assert (loaded.credentials["api.a"]["key"], loaded.credentials["api.b"]["key"]) == ("all", "mine")


def test_a_folder_without_documents_is_a_failure(tmp_path):
    assert "api" in load(SourceConfig(location=str(tmp_path))).failures


def test_a_file_that_went_away_is_a_failure(tmp_path):
    assert "api" in load(SourceConfig(location=str(tmp_path / "gone.json"))).failures


def test_a_document_that_could_not_be_fetched_is_a_failure():
    url = "https://a.example/x.json"
    loaded = load(SourceConfig(location=url), fetched={"api": DocumentError("moved")})
    assert loaded.failures["api"].message == "moved"


def test_a_fetched_document_resolves_against_its_url():
    url = "https://a.example/x.json"
    (source,) = load(SourceConfig(location=url), fetched={"api": Piece(b"{}")}).sources
    assert source.base == url


def test_settings_reach_the_engine_in_its_own_words(tmp_path):
    (tmp_path / "x.json").write_text(DOCUMENT)
    config = SourceConfig(
        location=str(tmp_path / "x.json"),
        exclude=["tag:admin"],
        security_schemes={
            "k": SchemeConfig(type="apiKey", location="query", name="key"),
            "b": SchemeConfig(type="http", scheme="bearer"),
            "o": SchemeConfig(type="oauth2", token_url="https://a.example/token"),
        },
        security=[{"k": []}],
        overrides={"GET /x": OverrideConfig(summary="Better"), "y": OverrideConfig(keywords=["word"])},
    )
    (source,) = load(config, secrets=Secrets({"api": {"k": "secret"}})).sources
    settings = source.settings
    assert settings.exclude == ("tag:admin",)
    assert settings.security == ({"k": ()},)
    assert "k" in settings.credentials
    assert "o" not in settings.credentials
    assert settings.overrides == {"GET /x": {"summary": "Better"}, "y": {"keywords": ["word"]}}
    assert settings.security_schemes == {
        "k": SecurityScheme("k", "apiKey", "query", "key"),
        "b": SecurityScheme("b", "bearer"),
        "o": SecurityScheme("o", "oauth2", token_url="https://a.example/token"),
    }


@pytest.fixture
def file_source(tmp_path):
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "part.yaml").write_text("part: 1")
    (tmp_path / "secret.yaml").write_text("secret: 1")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    return folder


def reads(folder, uri: str, document_url: str | None = None, fetch=no_fetch) -> bytes:
    config = SourceConfig(location=str(folder / "x.json"), document_url=document_url)
    source = Source("api", str(folder / "x.json"), b"", document_url)
    return retriever(source, config, fetch)(uri).data


def test_a_file_may_refer_to_its_folder(file_source):
    assert reads(file_source, str(file_source / "part.yaml")) == b"part: 1"
    assert reads(file_source, (file_source / "part.yaml").as_uri()) == b"part: 1"


@pytest.mark.parametrize("name", ["../secret.yaml", "link.yaml", "gone.yaml"])
def test_a_file_may_not_refer_outside_its_folder(file_source, name):
    with pytest.raises(DocumentError):
        reads(file_source, str(file_source / name))


def test_a_file_may_not_refer_to_the_web(file_source):
    with pytest.raises(DocumentError):
        reads(file_source, "https://a.example/part.yaml")


def test_with_a_document_url_references_are_found_beside_the_file(file_source):
    url = "https://a.example/v1/x.json"
    web = {"fetch": lambda url, *_: Piece(b"web")}
    assert reads(file_source, "https://a.example/v1/part.yaml", url) == b"part: 1"
    for name in ("o.yaml", "link.yaml", "%2e%2e/secret.yaml", "..%2fsecret.yaml"):
        assert reads(file_source, f"https://a.example/v1/{name}", url, **web) == b"web"


def test_a_document_of_the_web_stays_at_its_origin():
    config = SourceConfig(location="https://a.example/x.json")
    retrieve = retriever(
        Source("api", config.location, b""), config, lambda url, *_: Piece(f"page {url}".encode())
    )
    assert retrieve("https://a.example/y.json").data == b"page https://a.example/y.json"
    for uri in ("https://b.example/y.json", "http://a.example/y.json", "/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(DocumentError):
            retrieve(uri)


def test_a_credential_of_the_environment_makes_an_operation_executable(tmp_path):
    path = tmp_path / "x.json"
    schemes = {"api-key": {"type": "apiKey", "in": "header", "name": "K"}}
    operation = {"operationId": "go", "security": [{"api-key": []}], "responses": {}}
    path.write_text(
        json.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "t", "version": "1"},
                "servers": [{"url": "https://x.example"}],
                "paths": {"/go": {"get": operation}},
                "components": {"securitySchemes": schemes},
            }
        )
    )
    environ = {"CAPDEX_CREDENTIAL_API_API_KEY": "secret"}
    loaded = load(SourceConfig(location=str(path)), defaults=DefaultCredentials(["api"], environ))
    assert build_catalog(loaded.sources).operations[0].executable
    assert loaded.credentials["api"]["api-key"] == "secret"


def test_files_of_a_folder_that_differ_in_their_ending_alone_are_told_apart(tmp_path):
    (tmp_path / "a.json").write_text(DOCUMENT)
    (tmp_path / "a.yaml").write_text("swagger: '2.0'\n")
    (tmp_path / "b.json").write_text(DOCUMENT)
    loaded = load(SourceConfig(location=str(tmp_path)))
    assert [source.name for source in loaded.sources] == ["api.a.json", "api.a.yaml", "api.b"]


@pytest.mark.parametrize(
    ("reference", "content"),
    [(".env#/Foo", "KEY=planted-secret"), ("key", "planted-secret"), ("note.yaml#/Foo", "planted-secret")],
)
def test_a_reference_to_a_file_that_is_no_document_shows_nothing_of_it(tmp_path, reference, content):
    (tmp_path / reference.partition("#")[0]).write_text(content)
    (reason,) = kept_out_reasons(document_that_refers(tmp_path, reference))
    assert "planted-secret" not in reason


def test_a_missing_file_is_named_without_the_folders_above(tmp_path):
    (reason,) = kept_out_reasons(document_that_refers(tmp_path, "sub/gone.yaml#/Foo"))
    assert "gone.yaml" in reason
    assert str(tmp_path) not in reason


def document_that_refers(folder, reference):
    schema = {"$ref": reference}
    operation = {"operationId": "go", "requestBody": {"content": {"application/json": {"schema": schema}}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/go": {"post": operation}},
    }
    path = folder / "x.json"
    path.write_text(json.dumps(document))
    return path


def kept_out_reasons(path) -> list[str]:
    config = SourceConfig(location=str(path))
    (source,) = load(config).sources
    catalog = build_catalog([source], retrieve=lambda one: lambda uri: retriever(one, config)(uri).data)
    return [operation.reason for operation in catalog.kept_out]
