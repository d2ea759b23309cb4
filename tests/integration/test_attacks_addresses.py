"""Where a document, an upstream or a name server may try to lead a call, through /mcp/agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from integration.attack_support import KEYS, PUBLIC, Wire, agent, document, refusal, wire

__all__ = ["wire"]
pytestmark = pytest.mark.anyio

PRIVATE: Final = [
    "http://127.0.0.1", "http://127.1", "http://2130706433", "http://0x7f000001", "http://0x7f.0.0.1",
    "http://017700000001", "http://0", "http://0.0.0.0", "http://localhost",
    "http://169.254.169.254/latest", "http://2852039166", "http://0xa9fea9fe", 
    "http://[::1]", "http://[::]", "http://[::ffff:127.0.0.1]", "http://[::ffff:a9fe:a9fe]",
    "http://[0:0:0:0:0:ffff:7f00:1]", "http://[::127.0.0.1]", "http://[64:ff9b::7f00:1]", "http://[2002:7f00:1::]",
    "http://[fe80::1]", "http://[fd00:ec2::254]", "http://[fec0::1]", "http://[ff02::1]",
    "http://10.0.0.1", "http://172.16.0.1", "http://192.168.0.1", "http://100.64.0.1", "http://224.0.0.1",
    "http://255.255.255.255", "http://198.18.0.1", "http://192.0.0.1",
    "http://127.0.0.1:80",
    "https://127.0.0.1:443",
]  # fmt: skip


@pytest.mark.parametrize("server", PRIVATE)
async def test_a_document_cannot_point_at_a_private_address(wire: Wire, tmp_path: Path, server: str) -> None:
    async with agent(wire, tmp_path, document(server)) as execute:
        answer = await execute("any", body={})
    assert answer["error"]["code"] == "address_refused"
    assert answer["error"]["retryable"] is False
    assert wire.connections == []
    assert "127.0.0.1" not in answer["error"]["message"]


@pytest.mark.parametrize(
    "server",
    [
        "http://127.0.0.1\\@api.example",
        "http://api.example@127.0.0.1",
        "http://api.example:80@127.0.0.1",
        "http://0177.0.0.1",
        "http://0251.0376.0251.0376",
        "http://①②⑦.⓪.⓪.①",
        "http://127。0。0。1",
        "http://127.0.0.1%2F@api.example",
        "http://127.0.0.1%00.api.example",
        "http://[::1%25eth0]",
        "http://127.0.0.1:0",
        "http://127.0.0.1:99999",
        "http://127.0.0.1 .api.example",
        "http://.127.0.0.1",
        "http://127.0.0.1.",
        "gopher://127.0.0.1",
        "file:///etc/passwd",
        "unix:///run/docker.sock",
    ],
    ids=ascii,
)
async def test_a_server_that_readers_of_urls_read_differently_is_never_connected_to(
    wire: Wire, tmp_path: Path, server: str
) -> None:
    async with agent(wire, tmp_path, document(server)) as execute:
        answer = await execute("any", body={})
    assert wire.connections == []
    assert answer["error"]["code"] in {"address_refused", "not_executable", "upstream_unreachable"}


async def test_a_variable_of_the_server_is_the_documents_and_no_callers(wire: Wire, tmp_path: Path) -> None:
    variables = {"host": {"default": "127.0.0.1"}, "port": {"default": "80"}}
    data = document("http://{host}:{port}", variables=variables)
    async with agent(wire, tmp_path, data) as execute:
        assert (await execute("any", body={}))["error"]["code"] == "address_refused"
        error = (await execute("any", body={}, serverVariables={"host": "x"}))["error"]
    assert (error["code"], wire.connections) == ("invalid_request", [])


@pytest.mark.parametrize(
    "found", [["10.0.0.1"], ["127.0.0.1", "::1"], ["169.254.169.254"], ["::ffff:10.0.0.1"]]
)
async def test_a_name_that_means_a_private_address_is_refused(
    wire: Wire, tmp_path: Path, found: list[str]
) -> None:
    wire.names["api.example"] = [found]
    error = await refusal(wire, tmp_path, "any", body={})
    assert error["code"] == "address_refused"
    assert not any(one in json.dumps(error) for one in found)


async def test_a_name_that_is_private_the_second_time_is_refused_then(wire: Wire, tmp_path: Path) -> None:
    wire.names["api.example"] = [[PUBLIC], ["127.0.0.1"]]
    async with agent(wire, tmp_path) as execute:
        assert (await execute("any", body={}))["status"] == 200
        assert (await execute("any", body={}))["error"]["code"] == "address_refused"
    # The address that was checked is the one connected to: no look-up lies between.
    assert wire.connections == [(PUBLIC, 80)]


async def test_a_redirect_to_the_same_name_is_looked_up_and_checked_again(wire: Wire, tmp_path: Path) -> None:
    wire.names["api.example"] = [[PUBLIC], ["169.254.169.254"]]
    wire.upstream.redirects.append("http://api.example/latest/meta-data")
    async with agent(wire, tmp_path) as execute:
        assert (await execute("find", queryParams={}))["error"]["code"] == "address_refused"
    assert wire.connections == [(PUBLIC, 80)]


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest",
        "http://127.0.0.1/",
        "http://[::1]/",
        "//127.0.0.1/x",
        "/\\127.0.0.1/x",
        "http://api.example@127.0.0.1/",
        "http://api.example:81/",
        "https://api.example/",
        "http://api.example.evil.example/",
        "file:///etc/passwd",
    ],
)
async def test_a_redirect_to_another_origin_is_an_answer_and_is_not_followed(
    wire: Wire, tmp_path: Path, target: str
) -> None:
    wire.upstream.redirects.append(target)
    async with agent(wire, tmp_path) as execute:
        answer = await execute("withtoken")
    if target.startswith("/\\"):
        # A path of the same origin by RFC 3986, not another host as browsers take it.
        assert set(wire.connections) == {(PUBLIC, 80)}
    else:
        assert (answer["status"], answer["headers"]["location"]) == (302, target)
        assert wire.connections == [(PUBLIC, 80)]


@pytest.mark.parametrize("name", ["any", "note", "upload"])
async def test_what_changes_something_follows_no_redirect(wire: Wire, tmp_path: Path, name: str) -> None:
    wire.upstream.redirects.append("http://api.example/elsewhere")
    async with agent(wire, tmp_path) as execute:
        assert (await execute(name, body={"title": "x"}))["status"] == 302
    assert len(wire.upstream.requests) == 1


async def test_a_configured_private_server_is_reached_but_no_other_port_of_it(
    wire: Wire, tmp_path: Path
) -> None:
    wire.upstream.redirects.append("http://127.0.0.1:9001/x")
    async with agent(wire, tmp_path, server="http://127.0.0.1:9000") as execute:
        assert (await execute("find", queryParams={}))["status"] == 302
        assert (await execute("find", queryParams={}))["status"] == 200
    assert set(wire.connections) == {("127.0.0.1", 9000)}


async def test_no_refusal_shows_a_credential_or_an_address(wire: Wire, tmp_path: Path) -> None:
    wire.names["api.example"] = [["10.1.2.3"]]
    async with agent(wire, tmp_path) as execute:
        for scheme in KEYS:
            answer = json.dumps(await execute(f"with{scheme}"))
            assert "address_refused" in answer
            assert "10.1.2.3" not in answer
            assert not any(key in answer for key in KEYS.values())
