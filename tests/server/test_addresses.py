from __future__ import annotations

import httpcore2
import pytest

from capdex_engine.errors import AddressRefused
from capdex_server.addresses import GuardedBackend, is_public, origin_of

NONE: frozenset[tuple[str, int]] = frozenset()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "not an address",
    ],
)
def test_addresses_that_are_not_of_the_public_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_public_addresses(address):
    assert is_public(address)


class Recorder(httpcore2.AsyncNetworkBackend):
    """Connects to nothing; fails for the addresses it is told to."""

    def __init__(self, *dead: str) -> None:
        self.dead = dead
        self.tried: list[str] = []

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.tried.append(host)
        if host in self.dead:
            raise httpcore2.ConnectError
        return httpcore2.AsyncMockStream([])


def backend(recorder: Recorder, answers: list[str], configured=NONE) -> GuardedBackend:
    async def resolver(host: str, port: int) -> list[str]:
        return answers

    return GuardedBackend(configured, resolver, recorder)


@pytest.mark.anyio
async def test_the_checked_address_is_the_one_connected_to():
    recorder = Recorder()
    await backend(recorder, ["8.8.8.8"]).connect_tcp("api.example", 443)
    assert recorder.tried == ["8.8.8.8"]


@pytest.mark.anyio
async def test_private_addresses_are_refused_before_connecting():
    recorder = Recorder()
    with pytest.raises(AddressRefused) as caught:
        await backend(recorder, ["10.0.0.7", "::1"]).connect_tcp("api.example", 443)
    assert recorder.tried == []
    assert "10.0.0.7" not in caught.value.message


@pytest.mark.anyio
async def test_of_mixed_addresses_only_public_ones_are_tried():
    recorder = Recorder("8.8.8.8")
    await backend(recorder, ["127.0.0.1", "8.8.8.8", "9.9.9.9"]).connect_tcp("api.example", 443, timeout=4)
    assert recorder.tried == ["8.8.8.8", "9.9.9.9"]


@pytest.mark.anyio
async def test_a_configured_origin_may_be_private_but_only_at_its_port():
    configured = frozenset({("internal.example", 8080)})
    recorder = Recorder()
    await backend(recorder, ["10.0.0.7"], configured).connect_tcp("internal.example", 8080)
    assert recorder.tried == ["10.0.0.7"]
    with pytest.raises(AddressRefused):
        await backend(recorder, ["10.0.0.7"], configured).connect_tcp("internal.example", 22)


@pytest.mark.anyio
async def test_a_host_without_addresses_is_unreachable():
    with pytest.raises(httpcore2.ConnectError):
        await backend(Recorder(), []).connect_tcp("api.example", 443)


@pytest.mark.anyio
async def test_a_host_that_does_not_resolve_is_unreachable():
    async def resolver(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(httpcore2.ConnectError):
        await GuardedBackend(NONE, resolver, Recorder()).connect_tcp("api.example", 443)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://A.example/x", ("https", "a.example", 443)),
        ("http://a.example:81", ("http", "a.example", 81)),
        ("http://[::1]:9/", ("http", "::1", 9)),
        ("https://bücher.example", ("https", "xn--bcher-kva.example", 443)),
        ("ftp://a.example", None),
        ("/relative", None),
        ("http://a:99999999/", None),
        (None, None),
    ],
)
def test_origins(url, origin):
    assert origin_of(url) == origin
