"""Where references may lead, and how much they may bring."""

from __future__ import annotations

import os

import pytest

from capdex_engine.catalog import Source
from capdex_engine.errors import DocumentError
from capdex_server.config import DocumentLimits, SourceConfig
from capdex_server.pieces import Piece, read_file
from capdex_server.reach import Retriever

SECRET = b"planted: secret"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "api"
    (folder / "sub").mkdir(parents=True)
    (folder / "x.yaml").write_bytes(b"openapi: 3.1.0")
    (folder / "part.yaml").write_bytes(b"part: 1")
    (tmp_path / "secret.yaml").write_bytes(SECRET)
    (tmp_path / "apiary").mkdir()
    (tmp_path / "apiary" / "secret.yaml").write_bytes(SECRET)
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "way").symlink_to(tmp_path)
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    (folder / "inner.yaml").symlink_to(folder / "part.yaml")
    return folder


def retriever(location, fetch=None, *, clock=lambda: 0.0, limits=None, spent=0.0, data=b"", **fields):
    config = SourceConfig(location=str(location), **fields)
    source = Source("api", str(location), data, config.document_url)
    limits = DocumentLimits(**(limits or {}))
    return Retriever(source, config, fetch or refuse, limits=limits, clock=clock, spent=spent)


def refuse(url, seconds, room):
    raise AssertionError(url)


@pytest.mark.parametrize("name", ["part.yaml", "inner.yaml", "sub/../part.yaml", "./part.yaml"])
def test_a_reference_into_the_folder_is_read(folder, name):
    assert retriever(folder / "x.yaml")(f"{folder}/{name}").data == b"part: 1"
    assert retriever(folder)(f"file://{folder}/{name}").data == b"part: 1"


@pytest.mark.parametrize(
    "uri",
    [
        "{folder}/../secret.yaml",
        "{folder}/../apiary/secret.yaml",
        "{folder}/link.yaml",
        "{folder}/way/secret.yaml",
        "{folder}/sub/../../secret.yaml",
        "{folder}/loop.yaml",
        "file://{folder}/../secret.yaml",
        "file://{folder}/%2e%2e/secret.yaml",
        "file://{folder}/..%2fsecret.yaml",
        "FILE://{folder}/link.yaml",
        "file://elsewhere{folder}/part.yaml",
        "file:///etc/hosts.yaml",
        "/etc/hosts.yaml",
        "C:\\secret.yaml",
        "\\\\host\\share\\secret.yaml",
        "{folder}\\..\\secret.yaml",
        "{folder}/part.yaml\0.txt",
        "{folder}/" + "x" * 5000 + ".yaml",
        "{folder}",
        "ftp://a.example/x.yaml",
        "data:application/json,{}",
        "HTTP://a.example/x.yaml",
        "http://127.0.0.1/x.yaml",
    ],
)
def test_nothing_outside_the_folder_is_read_or_told_of(folder, uri, monkeypatch):
    monkeypatch.chdir(folder)
    for location in (folder / "x.yaml", folder):
        with pytest.raises(DocumentError) as caught:
            retriever(location)(uri.replace("{folder}", str(folder)))
        assert "planted" not in str(caught.value)


def test_a_refusal_is_the_same_whether_or_not_there_is_such_a_file(folder):
    messages = set()
    for name in ("secret.yaml", "gone.yaml"):
        with pytest.raises(DocumentError) as caught:
            retriever(folder / "x.yaml")(f"{folder}/../{name}")
        messages.add(caught.value.message)
    assert len(messages) == 1


def test_further_roots_are_the_operators_choice(folder, tmp_path):
    config = {"reference_roots": [str(tmp_path / "apiary")]}
    assert retriever(folder / "x.yaml", **config)(f"{tmp_path}/apiary/secret.yaml").data == SECRET
    with pytest.raises(DocumentError):
        retriever(folder / "x.yaml", **config)(f"{tmp_path}/secret.yaml")


def test_a_folder_that_has_gone_does_not_open_the_one_above(tmp_path):
    (tmp_path / "secret.yaml").write_bytes(SECRET)
    with pytest.raises(DocumentError):
        retriever(tmp_path / "gone")(f"{tmp_path}/secret.yaml")


def test_a_document_that_is_a_link_may_refer_beside_the_link_and_beside_its_target(folder, tmp_path):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "x.yaml").symlink_to(folder / "x.yaml")
    (mounted / "part.yaml").symlink_to(folder / "part.yaml")
    assert retriever(mounted / "x.yaml")(f"{mounted}/part.yaml").data == b"part: 1"


def test_a_pipe_is_no_document_and_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.yaml")
    with pytest.raises(DocumentError):
        retriever(folder)(f"{folder}/pipe.yaml")
    with pytest.raises(DocumentError):
        read_file(folder, 10)


URL = "https://a.example/v1/x.yaml"


@pytest.mark.parametrize(
    "uri",
    [
        "http://a.example/p.yaml",
        "https://a.example:8443/p.yaml",
        "https://b.example/p.yaml",
        "https://a.example@b.example/p.yaml",
        "https://a.example.b.example/p.yaml",
        "https://a.example\\@b.example/p.yaml",
        "https://127.0.0.1/p.yaml",
        "https:///p.yaml",
        "/etc/passwd",
        "file:///etc/passwd.yaml",
    ],
)
def test_a_document_of_the_web_refers_to_its_own_origin_alone(uri):
    with pytest.raises(DocumentError):
        retriever(URL)(uri)


def test_origins_are_compared_as_a_browser_would():
    for uri in ("https://A.EXAMPLE/p.yaml", "https://a.example:443/p.yaml"):
        assert retriever(URL, lambda url, *_: Piece(b"p"))(uri).data == b"p"


def test_further_origins_are_the_operators_choice():
    config = {"reference_origins": ["http://127.0.0.1:9000"]}
    retrieve = retriever(URL, lambda url, *_: Piece(b"p"), **config)
    assert retrieve("http://127.0.0.1:9000/p.yaml").data == b"p"
    with pytest.raises(DocumentError):
        retrieve("http://127.0.0.1:9001/p.yaml")


def test_only_so_many_files_are_read(folder):
    retrieve = retriever(folder, limits={"max_files": 2})
    for _ in range(2):
        retrieve(f"{folder}/part.yaml")
    with pytest.raises(DocumentError, match="max_files"):
        retrieve(f"{folder}/part.yaml")


def test_one_file_may_hold_so_much(folder):
    (folder / "part.yaml").write_bytes(b"x" * 1025)
    with pytest.raises(DocumentError, match="max_bytes"):
        retriever(folder, limits={"max_bytes": 1024})(f"{folder}/part.yaml")


def test_a_document_with_its_files_may_hold_so_much(folder):
    (folder / "part.yaml").write_bytes(b"x" * 600)
    retrieve = retriever(folder, limits={"max_total_bytes": 2048}, data=b"y" * 1000)
    retrieve(f"{folder}/part.yaml")
    with pytest.raises(DocumentError):
        retrieve(f"{folder}/part.yaml")


def test_fetching_a_document_with_its_references_takes_so_long_in_all():
    now = [0.0]
    given = []

    def fetch(url, seconds, room):
        given.append(seconds)
        now[0] += 50.0
        return Piece(b"p")

    retrieve = retriever(
        URL, fetch, clock=lambda: now[0], limits={"timeout": 60.0, "total_timeout": 100.0}, spent=20.0
    )
    retrieve("https://a.example/1.yaml")
    retrieve("https://a.example/2.yaml")
    assert given == [60.0, 30.0]
    with pytest.raises(DocumentError, match="total_timeout"):
        retrieve("https://a.example/3.yaml")
