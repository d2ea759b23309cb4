"""Real servers called through /mcp/agent: a ``capdex serve`` process, and the MCP SDK's own client.

httpbin and jupyter_server come from packages and bring their own documents, which capdex fetches from them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_server.demo import run_in_thread
from integration.depot_api import SERVICE_TOKEN, TOKEN, create_depot
from integration.recorder import Recorded
from integration.upstreams import HTTPBIN, JUPYTER, Served, capdex_serve, server, upstream_python
from leaks import look
from planted import planted

pytestmark = pytest.mark.anyio
USER, PASSWORD = "planted-user", planted("httpbin password")
KEY = planted("httpbin key")
JUPYTER_TOKEN = planted("jupyter token")
SECRETS = (TOKEN, SERVICE_TOKEN, PASSWORD, KEY, JUPYTER_TOKEN)

CONFIG = """
cache = {cache}

[sources.depot]
location = "{depot}/openapi.json"
credentials.OAuth2PasswordBearer.env = "DEPOT_TOKEN"
credentials.OAuth2.env = "DEPOT_SERVICE_TOKEN"
"""
HTTPBIN_CONFIG = """
[sources.httpbin]
location = "{httpbin}/spec.json"
server = "{httpbin}"
exclude = ["path:/bearer"]
security_schemes.account = {{ type = "http", scheme = "basic" }}
security = [{{ account = [] }}]
credentials.account = {{ user_env = "HTTPBIN_USER", password_env = "HTTPBIN_PASSWORD" }}

[sources.bearer]
location = "{httpbin}/spec.json"
server = "{httpbin}"
include = ["path:/bearer", "path:/cookies", "path:/headers"]
security_schemes.token = {{ type = "http", scheme = "bearer" }}
security_schemes.session = {{ type = "apiKey", in = "cookie", name = "session" }}
security = [{{ token = [], session = [] }}]
credentials.token.env = "HTTPBIN_KEY"
credentials.session.env = "HTTPBIN_KEY"
"""
JUPYTER_CONFIG = """
[sources.jupyter]
location = {jupyter_document}
server = "{jupyter}"
security_schemes.token = {{ type = "http", scheme = "bearer" }}
security = [{{ token = [] }}]
credentials.token.env = "JUPYTER_KEY"
"""


@dataclass
class House:
    """The servers that run."""

    capdex: Served
    urls: dict[str, str]
    skipped: dict[str, str]
    """Source -> why it does not run here."""
    depot: list[Recorded]
    shown: list[str] = field(default_factory=list)
    """Every result of capdex, as text."""


Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    seen: list[Recorded] = []
    urls: dict[str, str] = {}
    skipped: dict[str, str] = {}
    config = CONFIG
    with ExitStack() as stack:
        urls["depot"] = stack.enter_context(run_in_thread(create_depot(seen)))
        for name, package, more in (
            ("httpbin", "httpbin", HTTPBIN_CONFIG),
            ("jupyter", "jupyter_server", JUPYTER_CONFIG),
        ):
            try:
                python = upstream_python(package)
            except pytest.skip.Exception as reason:
                skipped[name] = str(reason)
                continue
            urls[name] = stack.enter_context(_upstream(name, python, folder))
            config += more
        values = {
            **urls,
            "cache": json.dumps(str(folder / "cache")),
            "jupyter_document": json.dumps(str(folder / "jupyter.yaml")),
        }
        (folder / "capdex.toml").write_text(config.format(**values))
        environ = {
            "DEPOT_TOKEN": TOKEN,
            "DEPOT_SERVICE_TOKEN": SERVICE_TOKEN,
            "HTTPBIN_USER": USER,
            "HTTPBIN_PASSWORD": PASSWORD,
            "HTTPBIN_KEY": KEY,
            "JUPYTER_KEY": JUPYTER_TOKEN,
        }
        capdex = stack.enter_context(capdex_serve(folder / "capdex.toml", environ))
        yield House(capdex, urls, skipped, seen)


def _upstream(name: str, python: Path, folder: Path) -> Any:
    if name == "httpbin":
        return server(python, HTTPBIN)
    return _jupyter(python, folder)


@contextmanager
def _jupyter(python: Path, folder: Path) -> Iterator[str]:
    root = folder / "notebooks"
    (root / "work").mkdir(parents=True)
    with server(python, JUPYTER, str(root), JUPYTER_TOKEN=JUPYTER_TOKEN, HOME=str(folder)) as url:
        headers = {"Authorization": f"token {JUPYTER_TOKEN}"}
        document = httpx2.get(f"{url}/api/spec.yaml", headers=headers)
        (folder / "jupyter.yaml").write_bytes(document.raise_for_status().content)
        yield url


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    async with Client(streamable_http_client(f"{house.capdex.url}/mcp/agent")) as client:
        yield client


@pytest.fixture
def call(house: House, client: Client) -> Call:
    """Find an operation by its method and path, and call it as an agent would."""

    async def called(source: str, wanted: str, **arguments: Any) -> dict[str, Any]:
        if source in house.skipped or (source == "bearer" and "httpbin" in house.skipped):
            pytest.skip(house.skipped.get(source) or house.skipped["httpbin"])
        query = {"query": wanted, "source": source, "limit": 1}
        found = await client.call_tool("search_capabilities", query)
        (match,) = found.structured_content["matches"]
        assert f"{match['method']} {match['path']}" == wanted
        given = {"name": match["name"], "schemaDigest": match["schemaDigest"], **arguments}
        result = await client.call_tool("execute_capability", given)
        house.shown += [json.dumps(one.structured_content) for one in (found, result)]
        look("results of capdex serve", house.shown[-2:])
        content: dict[str, Any] = result.structured_content
        assert "error" not in content, content["error"]
        assert result.is_error is (content["status"] >= 400)
        return content

    return called


async def test_httpbin_get_get(call: Call, house: House) -> None:
    done = await call("httpbin", "GET /get")
    assert done["body"]["url"] == f"{house.urls['httpbin']}/get"
    assert (done["body"]["args"], done["masked"]) == ({}, True)


async def test_httpbin_get_headers_masks_the_credential_that_it_echoes(call: Call, house: House) -> None:
    done = await call("httpbin", "GET /headers")
    assert done["body"]["headers"]["Authorization"] == "Basic ***"
    assert done["body"]["headers"]["Host"] == house.urls["httpbin"].removeprefix("http://")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_httpbin_post_put_and_patch_without_a_body(call: Call, method: str) -> None:
    done = await call("httpbin", f"{method} /{method.lower()}")
    assert (done["body"]["data"], done["body"]["form"]) == ("", {})
    assert done["body"]["headers"]["Content-Length"] == "0"
    assert "Content-Type" not in done["body"]["headers"]


async def test_httpbin_delete_delete(call: Call) -> None:
    done = await call("httpbin", "DELETE /delete")
    assert done["status"] == 200
    assert "Content-Length" not in done["body"]["headers"]


async def test_httpbin_delete_anything(call: Call) -> None:
    assert (await call("httpbin", "DELETE /anything"))["body"]["method"] == "DELETE"


@pytest.mark.parametrize("text", ["a+b/c?d#e%25", "é 日 😀", "..x", "a b"])
async def test_httpbin_get_base64_value(call: Call, text: str) -> None:
    coded = base64.urlsafe_b64encode(text.encode()).decode()
    done = await call("httpbin", "GET /base64/{value}", pathParams={"value": coded})
    assert done["body"] == text


async def test_httpbin_get_response_headers_takes_an_exploded_object(call: Call) -> None:
    wanted = {"X-One": "a b&c=d", "x-two": "é"}
    done = await call("httpbin", "GET /response-headers", queryParams={"freeform": wanted})
    assert {name: done["body"][name] for name in wanted} == wanted
    assert done["headers"]["x-one"] == "a b&c=d"


async def test_httpbin_post_response_headers(call: Call) -> None:
    done = await call("httpbin", "POST /response-headers", queryParams={"freeform": {"X-A": "1"}})
    assert done["headers"]["x-a"] == "1"


async def test_httpbin_get_basic_auth_with_the_servers_credential(call: Call) -> None:
    arguments = {"user": USER, "passwd": PASSWORD}
    done = await call("httpbin", "GET /basic-auth/{user}/{passwd}", pathParams=arguments)
    assert (done["status"], done["body"]["authenticated"]) == (200, True)
    refused = await call(
        "httpbin", "GET /basic-auth/{user}/{passwd}", pathParams={"user": "x", "passwd": "y"}
    )
    assert (refused["status"], "www-authenticate" in refused["headers"]) == (401, True)


async def test_httpbin_get_hidden_basic_auth(call: Call) -> None:
    arguments = {"user": USER, "passwd": PASSWORD}
    done = await call("httpbin", "GET /hidden-basic-auth/{user}/{passwd}", pathParams=arguments)
    assert done["status"] == 200


async def test_httpbin_get_bearer(call: Call) -> None:
    done = await call("bearer", "GET /bearer")
    assert (done["status"], done["body"]) == (200, {"authenticated": True, "token": "***"})


async def test_httpbin_get_cookies_with_a_key_as_cookie(call: Call) -> None:
    done = await call("bearer", "GET /cookies")
    assert (done["body"], done["masked"]) == ({"cookies": {"session": "***"}}, True)


async def test_httpbin_get_cookies_set_follows_its_own_redirect_and_keeps_no_cookie(call: Call) -> None:
    wanted = {"name": "left", "value": "behind"}
    done = await call("httpbin", "GET /cookies/set/{name}/{value}", pathParams=wanted)
    assert (done["status"], done["body"]) == (200, {"cookies": {}})
    assert "set-cookie" not in done["headers"]


async def test_httpbin_get_bytes_is_binary(call: Call) -> None:
    done = await call("httpbin", "GET /bytes/{n}", pathParams={"n": 300})
    assert len(base64.b64decode(done["body"]["base64"])) == done["bytes"] == 300


async def test_httpbin_get_range_is_binary(call: Call) -> None:
    done = await call("httpbin", "GET /range/{numbytes}", pathParams={"numbytes": "26"})
    assert base64.b64decode(done["body"]["base64"]) == b"abcdefghijklmnopqrstuvwxyz"


async def test_httpbin_get_image_png(call: Call) -> None:
    done = await call("httpbin", "GET /image/png")
    assert done["contentType"] == "image/png"
    assert base64.b64decode(done["body"]["base64"]).startswith(b"\x89PNG")


async def test_httpbin_get_image_asks_for_a_type_that_is_produced(call: Call) -> None:
    assert (await call("httpbin", "GET /image"))["contentType"].startswith("image/")


async def test_httpbin_get_image_jpeg_and_get_image_svg(call: Call) -> None:
    done = await call("httpbin", "GET /image/jpeg")
    assert base64.b64decode(done["body"]["base64"]).startswith(b"\xff\xd8")
    assert "<svg" in (await call("httpbin", "GET /image/svg"))["body"]


@pytest.mark.parametrize(("coding", "mark"), [("gzip", "gzipped"), ("deflate", "deflated")])
async def test_httpbin_get_gzip_and_get_deflate_are_decoded(call: Call, coding: str, mark: str) -> None:
    done = await call("httpbin", f"GET /{coding}")
    assert done["body"][mark] is True
    assert "content-encoding" not in done["headers"]


async def test_httpbin_get_brotli_which_was_not_asked_for_stays_bytes(call: Call) -> None:
    done = await call("httpbin", "GET /brotli")
    assert done["headers"]["content-encoding"] == "br"
    assert len(base64.b64decode(done["body"]["base64"])) == done["bytes"]


async def test_httpbin_get_encoding_utf8(call: Call) -> None:
    done = await call("httpbin", "GET /encoding/utf8")
    assert "∮ E⋅da = Q" in done["body"]


async def test_httpbin_get_html_get_xml_and_get_robots_are_text(call: Call) -> None:
    assert "Moby-Dick" in (await call("httpbin", "GET /html"))["body"]
    assert (await call("httpbin", "GET /xml"))["body"].startswith("<?xml")
    assert "User-agent" in (await call("httpbin", "GET /robots.txt"))["body"]


async def test_httpbin_get_json(call: Call) -> None:
    assert (await call("httpbin", "GET /json"))["body"]["slideshow"]["slides"][0]["type"] == "all"


async def test_httpbin_get_cache_with_a_conditional_header(call: Call) -> None:
    fresh = await call("httpbin", "GET /cache")
    assert fresh["status"] == 200
    done = await call("httpbin", "GET /cache", headerParams={"if-none-match": '"x"'})
    assert (done["status"], done["body"]) == (304, None)


@pytest.mark.parametrize(("method", "status"), [("GET", 418), ("POST", 503), ("PUT", 204), ("DELETE", 404)])
async def test_httpbin_status_codes_come_back_as_they_are(call: Call, method: str, status: int) -> None:
    done = await call("httpbin", f"{method} /status/{{codes}}", pathParams={"codes": str(status)})
    assert done["status"] == status


async def test_httpbin_get_redirect_ends_at_the_same_origin(call: Call) -> None:
    done = await call("httpbin", "GET /redirect/{n}", pathParams={"n": 3})
    assert (done["status"], done["body"]["headers"]["Authorization"]) == (200, "Basic ***")


async def test_httpbin_get_redirect_to_another_origin_is_the_answer(call: Call, house: House) -> None:
    """The other origin is the Depot, which would have kept the request."""
    before = len(house.depot)
    target = f"{house.urls['depot']}/parts?ids=1"
    done = await call("httpbin", "GET /redirect-to", queryParams={"url": target, "status_code": 307})
    assert (done["status"], done["headers"]["location"]) == (307, target)
    assert len(house.depot) == before


async def test_httpbin_post_redirect_to_sends_a_form_and_is_not_repeated(call: Call) -> None:
    done = await call("httpbin", "POST /redirect-to", body={"url": "/get", "status_code": 307})
    assert done["status"] in {302, 307}


async def test_httpbin_get_stream_is_lines(call: Call) -> None:
    done = await call("httpbin", "GET /stream/{n}", pathParams={"n": 3})
    assert [json.loads(line)["id"] for line in done["body"].splitlines()] == [0, 1, 2]


async def test_httpbin_get_links_and_get_user_agent(call: Call) -> None:
    done = await call("httpbin", "GET /links/{n}/{offset}", pathParams={"n": 3, "offset": 1})
    assert "/links/3/0" in done["body"]
    assert (await call("httpbin", "GET /user-agent"))["body"]["user-agent"].startswith("capdex/")


async def test_jupyter_get_api_needs_no_token_and_gets_one_all_the_same(call: Call) -> None:
    assert "version" in (await call("jupyter", "GET /api/"))["body"]


async def test_jupyter_get_me_knows_the_token(call: Call) -> None:
    permissions = json.dumps({"contents": ["read", "write"]})
    done = await call("jupyter", "GET /api/me", queryParams={"permissions": permissions})
    assert done["body"]["permissions"]["contents"] == ["read", "write"]


async def test_jupyter_get_status_and_get_kernelspecs(call: Call) -> None:
    assert (await call("jupyter", "GET /api/status"))["body"]["kernels"] == 0
    assert "kernelspecs" in (await call("jupyter", "GET /api/kernelspecs"))["body"]


async def test_jupyter_get_spec_yaml_is_text(call: Call) -> None:
    assert "Jupyter Server API" in (await call("jupyter", "GET /api/spec.yaml"))["body"]


async def test_jupyter_post_contents_creates_patch_renames_and_delete_deletes_a_notebook(call: Call) -> None:
    contents = "/api/contents/{path}"
    made = await call("jupyter", f"POST {contents}", pathParams={"path": "work"}, body={"type": "notebook"})
    assert (made["status"], made["body"]["type"]) == (201, "notebook")
    old, new = made["body"]["path"], "work/Ünser Plan #1?.ipynb"
    moved = await call("jupyter", f"PATCH {contents}", pathParams={"path": old}, body={"path": new})
    assert (moved["status"], moved["body"]["path"]) == (200, new)
    seen = await call("jupyter", f"GET {contents}", pathParams={"path": new}, queryParams={"content": 0})
    assert (seen["body"]["path"], seen["body"]["content"]) == (new, None)
    kept = await call("jupyter", f"POST {contents}/checkpoints", pathParams={"path": new})
    assert kept["status"] == 201
    listed = await call("jupyter", f"GET {contents}/checkpoints", pathParams={"path": new})
    assert [one["id"] for one in listed["body"]] == [kept["body"]["id"]]
    point = {"path": new, "checkpoint_id": kept["body"]["id"]}
    back = await call("jupyter", f"POST {contents}/checkpoints/{{checkpoint_id}}", pathParams=point)
    assert back["status"] == 204
    gone = await call("jupyter", f"DELETE {contents}/checkpoints/{{checkpoint_id}}", pathParams=point)
    assert gone["status"] == 204
    gone = await call("jupyter", f"DELETE {contents}", pathParams={"path": new})
    assert (gone["status"], gone["body"]) == (204, None)
    assert (await call("jupyter", f"GET {contents}", pathParams={"path": new}))["status"] == 404


async def test_jupyter_put_contents_saves_text_and_get_reads_it_back(call: Call) -> None:
    text = "première ligne\nзбережено\n"
    model = {"type": "file", "format": "text", "content": text}
    path = {"path": "work/notes & more.txt"}
    assert (await call("jupyter", "PUT /api/contents/{path}", pathParams=path, body=model))["status"] == 201
    query = {"type": "file", "format": "text", "content": 1}
    done = await call("jupyter", "GET /api/contents/{path}", pathParams=path, queryParams=query)
    assert done["body"]["content"] == text


async def test_jupyter_patch_config_merges_and_get_config_shows_it(call: Call) -> None:
    section = {"section_name": "planning"}
    wanted = {"a": {"b": [1, None, "é"]}}
    await call("jupyter", "PATCH /api/config/{section_name}", pathParams=section, body=wanted)
    assert (await call("jupyter", "GET /api/config/{section_name}", pathParams=section))["body"]["a"][
        "b"
    ] == [
        1,
        None,
        "é",
    ]


async def test_depot_upload_file_is_multipart_with_its_fields(call: Call, house: House) -> None:
    body = {
        "file": {"base64": "AP8NCg==", "filename": "plan é.bin", "contentType": "image/png"},
        "title": "A & B",
        "tags": ["x", "y z"],
        "public": True,
    }
    done = await call("depot", "POST /files", body=body)
    assert (done["status"], done["body"]) == (
        201,
        {
            "name": "plan é.bin",
            "type": "image/png",
            "hex": "00ff0d0a",
            "title": "A & B",
            "tags": ["x", "y z"],
            "public": True,
        },
    )
    assert house.depot[-1].headers["authorization"] == f"Bearer {TOKEN}"


async def test_depot_upload_files_repeats_the_part(call: Call) -> None:
    files = [{"text": "one", "filename": "1.txt"}, {"base64": "dHdv", "filename": "2.txt"}]
    done = await call("depot", "POST /files/batch", body={"files": files})
    assert done["body"] == [["1.txt", "one"], ["2.txt", "two"]]


async def test_depot_download_file_keeps_the_path_in_one_segment(call: Call, house: House) -> None:
    done = await call("depot", "GET /files/{path}", pathParams={"path": "a/b c?d#e"})
    assert base64.b64decode(done["body"]["base64"]) == b"\x89\x00a/b c?d#e"
    assert house.depot[-1].target == "/files/a%2Fb%20c%3Fd%23e"


async def test_depot_find_parts_sends_arrays_in_query_header_and_cookie(call: Call, house: House) -> None:
    done = await call(
        "depot",
        "GET /parts",
        queryParams={"ids": ["3", 5], "state": ["on the way", "open"], "after": "2026-02-28"},
        headerParams={"X-Warehouse": ["north", "south"]},
        cookieParams={"visitor": "v 1"},
    )
    assert done["body"]["ids"] == [3, 5]
    assert (done["body"]["state"], done["body"]["after"]) == (["on the way", "open"], "2026-02-28")
    seen = house.depot[-1]
    assert seen.target == "/parts?ids=3&ids=5&state=on%20the%20way&state=open&after=2026-02-28"
    assert (seen.headers["x-warehouse"], seen.headers["cookie"]) == ("north,south", "visitor=v%201")
    assert "authorization" not in seen.headers


async def test_depot_list_orders_takes_a_page(call: Call, house: House) -> None:
    page = {"size": 5, "states": ["packed"], "before": "2026-01-01T00:00:00+01:00"}
    done = await call("depot", "GET /orders", queryParams=page)
    assert done["body"] == page
    assert "before=2026-01-01T00%3A00%3A00%2B01%3A00" in house.depot[-1].target


async def test_depot_make_order_nests_and_keeps_nulls(call: Call, house: House) -> None:
    order = {
        "lines": [{"sku": "a", "count": 2, "price": "12.50", "options": {"c": None, "n": 3, "é": "ü"}}],
        "ship_to": {"street": "Straße 1", "zip": "01067", "lines": None},
        "due": None,
    }
    done = await call("depot", "POST /orders", body=order)
    assert (done["status"], done["body"]) == (201, {**order, "state": "open"})
    assert json.loads(house.depot[-1].body) == order


async def test_depot_change_order_says_null_and_leaves_the_rest_out(call: Call) -> None:
    done = await call("depot", "PATCH /orders/{number}", pathParams={"number": 7}, body={"note": None})
    assert done["body"] == {"number": 7, "given": {"note": None}}


async def test_depot_set_state_sends_a_bare_json_text(call: Call, house: House) -> None:
    await call("depot", "PUT /orders/{number}/state", pathParams={"number": "7"}, body="on the way")
    assert house.depot[-1].body == b'"on the way"'


async def test_depot_drop_order_with_and_without_its_body(call: Call, house: House) -> None:
    done = await call("depot", "DELETE /orders/{number}", pathParams={"number": 8})
    assert (done["status"], house.depot[-1].body) == (204, b"")
    path = {"number": 404}
    refused = await call("depot", "DELETE /orders/{number}", pathParams=path, body={"reason": "é"})
    assert (refused["status"], refused["body"]) == (404, {"detail": {"reason": "é"}})


async def test_depot_get_state_is_an_enum_in_the_path(call: Call, house: House) -> None:
    done = await call("depot", "GET /states/{state}", pathParams={"state": "on the way"})
    assert (done["body"], house.depot[-1].target) == ("on the way", "/states/on%20the%20way")


async def test_depot_set_label_chooses_among_content_types(call: Call) -> None:
    sku = {"sku": "s"}
    text = await call("depot", "PUT /labels/{sku}", pathParams=sku, body="é")
    assert (text["body"]["type"], text["body"]["hex"]) == ("text/plain; charset=utf-8", "c3a9")
    image = await call(
        "depot", "PUT /labels/{sku}", pathParams=sku, body={"base64": "iVAA"}, contentType="image/png"
    )
    assert (image["body"]["type"], image["body"]["hex"]) == ("image/png", "895000")


async def test_depot_make_token_is_a_form(call: Call, house: House) -> None:
    body = {"grant_type": "password", "username": "a b", "password": "p&=+", "scope": "x y"}
    done = await call("depot", "POST /token", body=body)
    assert done["body"] == {"user": "a b", "scopes": ["x", "y"], "grant": "password"}
    assert house.depot[-1].headers["content-type"] == "application/x-www-form-urlencoded"


async def test_depot_count_stock_carries_the_token_of_its_own_scheme(call: Call) -> None:
    done = await call("depot", "GET /stock")
    assert done["body"] == {"right": True, "echo": "Bearer ***"}


async def test_no_result_and_no_line_of_the_log_held_a_secret(call: Call, house: House) -> None:
    """Last of the file: it looks at what all tests above were shown."""
    await call("depot", "GET /stock")
    coded = [base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()]
    for text in [*house.shown, *house.capdex.log]:
        assert not [secret for secret in (*SECRETS, *coded) if secret in text]
