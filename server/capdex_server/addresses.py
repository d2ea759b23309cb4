"""Which addresses may be connected to, and a network backend that connects to those alone."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import anyio
import httpcore2
import httpx2

from capdex_engine.errors import AddressRefused, UpstreamUnreachable
from capdex_server.streams import HeadBound

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
"""``(host, port)`` -> addresses in order of preference; raises OSError."""
MAX_ADDRESSES: Final = 4
"""Of one host, tried in turn."""
_EMBEDDING: Final = (
    (ipaddress.IPv6Network("::/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)
"""IPv6 networks that hold an IPv4 address, and how many bits stand right of it."""


class WrongTarget(UpstreamUnreachable):
    """The URL or the TLS certificate is wrong, which repeating the call cannot cure."""


async def resolve(host: str, port: int) -> list[str]:
    """Return a host's addresses by the system's resolver."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def origin_of(url: str | None) -> tuple[str, str, int] | None:
    """Return ``(scheme, host, port)`` of an http(s) URL, host in ASCII; None for anything else."""
    try:
        parsed = httpx2.URL(url or "")
    except httpx2.InvalidURL:
        return None
    port = parsed.port or {"http": 80, "https": 443}.get(parsed.scheme, 0)
    if parsed.scheme not in {"http", "https"} or not parsed.host or not 0 < port < 65536:
        return None
    return parsed.scheme, parsed.raw_host.decode("ascii").lower(), port


def is_public(text: str) -> bool:
    """Return whether an address is one of the public internet.

    Private, loopback, link-local, multicast, unspecified, shared, reserved and documentation
    addresses are not, nor are IPv6 forms that embed one of these.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return all(_plain_public(one) for one in (address, *_embedded(address)))


def _plain_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network, _ in _EMBEDDING):
            return True
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _embedded(address: Address) -> Iterable[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv6Address):
        for network, shift in _EMBEDDING:
            if address in network:
                yield ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves once, checks, and connects to the checked address.

    Args:
        configured: ``(host, port)`` pairs that may be any address.
        resolver: How a host becomes addresses.
        backend: What opens the sockets.
    """

    def __init__(
        self,
        configured: frozenset[tuple[str, int]],
        resolver: Resolve = resolve,
        backend: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._configured = configured
        self._resolver = resolver
        self._backend = backend or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first permitted address that answers.

        Raises:
            AddressRefused: No address of the host is permitted.
            httpcore2.ConnectError, httpcore2.ConnectTimeout: None answers.
        """
        addresses = await self._permitted(host, port, timeout)
        share = timeout / len(addresses) if timeout else None
        for address in addresses[:-1]:
            try:
                return HeadBound(
                    await self._backend.connect_tcp(address, port, share, local_address, socket_options)
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return HeadBound(
            await self._backend.connect_tcp(addresses[-1], port, share, local_address, socket_options)
        )

    async def _permitted(self, host: str, port: int, timeout: float | None) -> list[str]:
        try:
            with anyio.fail_after(timeout):
                addresses = await self._resolver(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("name resolution") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError("name resolution") from None
        if (host.lower(), port) not in self._configured:
            addresses = _public_ones(addresses)
        if not addresses:
            raise httpcore2.ConnectError("no address")
        return addresses[:MAX_ADDRESSES]


def _public_ones(addresses: list[str]) -> list[str]:
    public = [address for address in addresses if is_public(address)]
    if addresses and not public:
        raise AddressRefused(
            "The target's address is private, loopback, link-local or reserved, and only a source's "
            "configured location or server may name such a one. Its operator can set the source's server."
        )
    return public
