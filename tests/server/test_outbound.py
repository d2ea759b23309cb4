from __future__ import annotations

import datetime
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import pytest
from anyio.streams.tls import TLSListener

from capdex_engine.call import Request, Response, sending
from capdex_engine.errors import (
    AddressRefused,
    DocumentError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_server import outbound as module
from capdex_server.config import DocumentLimits, SchemeConfig, SourceConfig
from capdex_server.outbound import Outbound, configured_origins

pytestmark = pytest.mark.anyio
HANG = None


@dataclass
class Upstream:
    """A loopback server that answers raw bytes per path and keeps what it received."""

    port: int = 0
    answers: dict[str, list[bytes | None]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, *parts: bytes | None) -> None:
        """Send the parts, then close; HANG waits instead."""
        self.answers[path] = list(parts)

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        self.connections += 1
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            head, _, body = head.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            while len(body) < int(headers.get("content-length", 0)):
                body += await stream.receive()
            self.requests.append((first, headers, body))
            for part in self.answers[first.split(" ")[1].partition("?")[0]]:
                if part is HANG:
                    await anyio.sleep_forever()
                await stream.send(part)


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Upstream]:
    upstream = Upstream()
    sockets = await anyio.create_tcp_listener(local_host="127.0.0.1")
    upstream.port = sockets.extra(anyio.abc.SocketAttribute.local_port)
    listener = TLSListener(sockets, tls, standard_compatible=False) if tls else sockets
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, upstream.serve)
        yield upstream
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Upstream, Outbound]]:
    """An upstream, and an Outbound whose source "api" is configured to be there."""
    async with serving() as upstream:
        outbound = Outbound({"api": frozenset({("127.0.0.1", upstream.port)})}, pauses=())
        try:
            yield upstream, outbound
        finally:
            await outbound.aclose()


def ok(body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def send(
    outbound: Outbound, url: str, method: str = "GET", *, body: bytes | None = None, **options
) -> Response:
    headers = options.pop("headers", ())
    options = {"source": "api", "timeout": 5.0, "max_bytes": 1000, **options}
    return await outbound(Request(method, url, tuple(headers), body), **options)


async def test_a_request_goes_out_as_it_was_written():
    async with both() as (upstream, outbound):
        upstream.answer("/a%2Fb/../c|d", ok(b"{}", "Content-Type: application/json", "X-A: 1", "X-A: 2"))
        response = await send(
            outbound,
            f"{upstream.url}/a%2Fb/../c|d?x=%20+[1]&y=?#frag",
            "POST",
            body=b"\x00\xff",
            headers=[("X-Key", "grün"), ("Host", "evil.example"), ("Transfer-Encoding", "chunked")],
        )
    first, headers, body = upstream.requests[0]
    assert first == "POST /a%2Fb/../c|d?x=%20+[1]&y=? HTTP/1.1"
    assert body == b"\x00\xff"
    assert headers["x-key"].encode("latin-1").decode("utf-8") == "grün"
    assert headers["host"] == f"127.0.0.1:{upstream.port}"
    assert "transfer-encoding" not in headers
    assert headers["user-agent"].startswith("capdex/")
    assert headers["accept-encoding"] == "gzip, deflate"
    assert (response.status, response.body, response.truncated) == (200, b"{}", False)
    assert [value for name, value in response.headers if name == "X-A"] == ["1", "2"]


@pytest.mark.parametrize(
    ("method", "length"), [("GET", None), ("DELETE", None), ("POST", "0"), ("PATCH", "0")]
)
async def test_a_method_that_usually_has_a_body_says_when_there_is_none(method, length):
    async with both() as (upstream, outbound):
        upstream.answer("/", ok())
        await send(outbound, upstream.url, method)
    assert upstream.requests[0][1].get("content-length") == length


async def test_no_cookie_is_kept():
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"", "Set-Cookie: a=b"))
        await send(outbound, upstream.url)
        await send(outbound, upstream.url)
    assert "cookie" not in upstream.requests[1][1]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("extra", [0, 1, 50_000])
async def test_a_body_over_the_limit_is_cut_with_its_real_status(method, extra):
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"x" * (1000 + extra), status="201 Created"))
        response = await send(outbound, upstream.url, method)
    assert (response.status, len(response.body), response.truncated) == (201, 1000, extra > 0)


async def test_a_compressed_body_is_decoded_and_bounded():
    async with both() as (upstream, outbound):
        upstream.answer("/small", ok(gzip.compress(b"hello"), "Content-Encoding: gzip"))
        upstream.answer("/bomb", ok(gzip.compress(b"\0" * 9_000_000), "Content-Encoding: gzip"))
        small = await send(outbound, upstream.url + "/small")
        bomb = await send(outbound, upstream.url + "/bomb")
    assert (small.body, small.truncated) == (b"hello", False)
    assert not {name.lower() for name, _ in small.headers} & {"content-encoding", "content-length"}
    assert (len(bomb.body), bomb.truncated) == (1000, True)


async def test_a_redirect_within_the_origin_is_followed_for_get():
    async with both() as (upstream, outbound):
        upstream.answer("/old", ok(b"", "Location: /new", status="302 Found"))
        upstream.answer("/new", ok(b"there"))
        response = await send(outbound, upstream.url + "/old", headers=[("X-Key", "k")])
    assert response.body == b"there"
    assert upstream.requests[1][1]["x-key"] == "k"


async def test_a_redirect_keeps_the_bytes_of_its_location():
    async with both() as (upstream, outbound):
        upstream.answer("/old", ok(b"", "Location: /café x%20y", status="302 Found"))
        upstream.answer("/caf%C3%A9%20x%20y", ok(b"there"))
        assert (await send(outbound, upstream.url + "/old")).body == b"there"


@pytest.mark.parametrize("location", ["http://[::1", "http://[s3cret-value]/x", "http://[", "//[x"])
async def test_a_redirect_to_what_is_no_url_is_the_answer(location):
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"", f"Location: {location}", status="302 Found"))
        assert (await send(outbound, upstream.url)).status == 302


async def test_a_redirect_to_another_origin_is_the_answer():
    async with both() as (upstream, outbound), serving() as other:
        upstream.answer("/", ok(b"", f"Location: {other.url}/x", status="302 Found"))
        response = await send(outbound, upstream.url, headers=[("X-Key", "secret")])
    assert response.status == 302
    assert other.connections == 0


async def test_a_redirect_of_a_post_is_the_answer():
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"", "Location: /new", status="307 Temporary Redirect"))
        assert (await send(outbound, upstream.url, "POST", body=b"x")).status == 307
    assert len(upstream.requests) == 1


async def test_a_redirect_loop_ends():
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"", "Location: /", status="302 Found"))
        assert (await send(outbound, upstream.url)).status == 302
    assert len(upstream.requests) == 4


@pytest.mark.parametrize(
    ("method", "retryable"), [("GET", True), ("HEAD", True), ("POST", False), ("PUT", True)]
)
async def test_a_dead_upstream_is_unreachable(method, retryable):
    async with both() as (upstream, outbound):
        pass
    with pytest.raises(UpstreamUnreachable) as caught:
        await send(outbound, upstream.url, method)
    assert caught.value.retryable is retryable
    assert "127.0.0.1" not in caught.value.message


@pytest.mark.parametrize(
    ("method", "retryable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
async def test_an_upstream_that_does_not_answer_times_out(method, retryable):
    async with both() as (upstream, outbound):
        upstream.answer("/", HANG)
        with pytest.raises(UpstreamTimeout) as caught:
            await send(outbound, upstream.url, method, timeout=0.05)
    assert caught.value.retryable is retryable
    assert ("check before repeating" in caught.value.message) is not retryable
    assert ("taken effect" in caught.value.message) is (method != "GET")


def test_the_engine_and_the_transport_hold_the_same_methods_for_repeatable():
    idempotent = {"GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PUT", "DELETE"}
    assert module.REPEATABLE_METHODS == sending.REPEATABLE_METHODS == idempotent


async def test_a_drip_of_bytes_does_not_outlast_the_time_limit():
    async with both() as (upstream, outbound):
        upstream.answer("/", ok(b"x", length=100), HANG)
        with pytest.raises(UpstreamTimeout):
            await send(outbound, upstream.url, timeout=0.05)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_what_is_no_http_is_a_protocol_error(answer):
    async with both() as (upstream, outbound):
        upstream.answer("/", answer)
        with pytest.raises(UpstreamProtocolError) as caught:
            await send(outbound, upstream.url)
    assert caught.value.retryable


BROKEN = {
    "closed": [ok(b"half", length=100)],
    "hangs": [ok(b"half", length=100), HANG],
    "not gzip": [ok(b"half", "Content-Encoding: gzip")],
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
async def test_an_answer_that_breaks_off_fails_a_safe_call_but_not_one_that_took_effect(kind):
    async with both() as (upstream, outbound):
        upstream.answer("/", *BROKEN[kind])
        with pytest.raises((UpstreamProtocolError, UpstreamTimeout)):
            await send(outbound, upstream.url, "GET", timeout=0.2)
        for method in ("POST", "PUT"):
            response = await send(outbound, upstream.url, method, timeout=0.2)
            assert (response.status, response.truncated) == (200, True)


async def test_a_header_that_cannot_be_sent_is_a_protocol_error_that_says_so():
    async with both() as (upstream, outbound):
        with pytest.raises(UpstreamProtocolError) as caught:
            await send(outbound, upstream.url, headers=[("X-A", "a\r\nX-B: b")])
    assert not caught.value.retryable
    assert upstream.requests == []


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "http://", "/relative", "http://[::1", "http://a:999999/"]
)
async def test_what_is_no_http_url_is_unreachable_and_stays_so(url):
    with pytest.raises(UpstreamUnreachable) as caught:
        await send(Outbound({}), url)
    assert not caught.value.retryable


async def test_another_sources_configured_origin_is_refused_even_with_an_open_connection():
    async with both() as (upstream, outbound):
        upstream.answer("/", ok())
        await send(outbound, upstream.url)
        with pytest.raises(AddressRefused):
            await send(outbound, upstream.url, source="other")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
async def test_loopback_is_refused_however_it_is_spelt(host):
    async with serving() as upstream:
        with pytest.raises(AddressRefused):
            await send(Outbound({}), f"http://{host}:{upstream.port}/")
    assert upstream.connections == 0


async def test_the_name_of_the_url_stays_the_host_whatever_address_is_connected_to():
    async def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with serving() as upstream:
        upstream.answer("/", ok(b"hi"))
        origins = {"api": frozenset({("api.example", upstream.port)})}
        outbound = Outbound(origins, resolver=resolver)
        response = await send(outbound, f"http://api.example:{upstream.port}/")
        await outbound.aclose()
    assert response.body == b"hi"
    assert upstream.requests[0][1]["host"] == f"api.example:{upstream.port}"


def certificate(name: str, folder: Path) -> Path:
    """Write key and self-signed certificate of a host into one file."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(encoding)
    )
    return path


@pytest.mark.parametrize(("host", "accepted"), [("api.example", True), ("other.example", False)])
async def test_tls_names_are_those_of_the_url_not_of_the_address(tmp_path, host, accepted):
    path = certificate("api.example", tmp_path)
    server, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=path)
    server.load_cert_chain(path)
    asked: list[str] = []
    server.sni_callback = lambda connection, name, context: asked.append(name)

    async def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with serving(server) as upstream:
        upstream.answer("/", ok(b"hi"))
        outbound = Outbound({"api": frozenset({(host, upstream.port)})}, resolver=resolver, ssl_context=ours)
        sent = send(outbound, f"https://{host}:{upstream.port}/")
        if accepted:
            assert (await sent).body == b"hi"
        else:
            with pytest.raises(UpstreamUnreachable) as caught:
                await sent
            assert not caught.value.retryable
        await outbound.aclose()
    assert asked == [host]


async def test_https_to_a_port_that_speaks_http_is_no_matter_of_certificates():
    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    outbound = Outbound({"api": frozenset({("127.0.0.1", port)})})
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        with pytest.raises(UpstreamUnreachable) as caught:
            await send(outbound, f"https://127.0.0.1:{port}")
        tasks.cancel_scope.cancel()
    assert "certificate" not in caught.value.message
    assert "TLS" in caught.value.message
    assert not caught.value.retryable


async def test_cancelling_closes_the_upstream_connection():
    closed = anyio.Event()

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                while True:
                    await stream.receive()
                    started.set()
            except anyio.EndOfStream:
                closed.set()

    started = anyio.Event()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    outbound = Outbound({"api": frozenset({("127.0.0.1", port)})})
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        async with anyio.create_task_group() as call:
            call.start_soon(lambda: send(outbound, f"http://127.0.0.1:{port}/"))
            await started.wait()
            call.cancel_scope.cancel()
        with anyio.fail_after(5):
            await closed.wait()
        tasks.cancel_scope.cancel()


async def test_a_document_is_fetched():
    async with both() as (upstream, outbound):
        upstream.answer("/api.json", ok(b"{}"))
        assert (await outbound.fetch(upstream.url + "/api.json", source="api")).data == b"{}"


def moved(upstream: Upstream) -> bytes:
    return ok(b"", "Location: https://elsewhere.example/", status="301 Moved Permanently")


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: ok(b"", status="404 Not Found"),
        moved,
        lambda _: b"garbage",
        lambda _: ok(b"x" * 1025),
    ],
)
async def test_a_document_that_cannot_be_had_is_a_document_error(answer: Callable[[Upstream], bytes]):
    async with both() as (upstream, outbound):
        upstream.answer("/api.json", answer(upstream))
        with pytest.raises(DocumentError) as caught:
            limits = DocumentLimits(max_bytes=1024)
            await outbound.fetch(upstream.url + "/api.json", source="api", limits=limits)
    assert caught.value.details["location"] == upstream.url + "/api.json"


async def test_a_document_at_a_private_address_that_is_not_configured_is_refused():
    with pytest.raises(DocumentError):
        await Outbound({}).fetch("http://127.0.0.1:1/api.json", source="api")


def test_configured_origins_are_location_server_and_token_endpoints():
    source = SourceConfig(
        location="https://docs.example/api.json",
        document_url="https://not.example/",
        server="http://{host}:8080/v1",
        server_variables={"host": "10.0.0.5"},
        security_schemes={"o": SchemeConfig(type="oauth2", token_url="https://login.example/token")},
    )
    assert configured_origins(source) == {("docs.example", 443), ("10.0.0.5", 8080), ("login.example", 443)}


def test_a_file_names_no_origin():
    assert configured_origins(SourceConfig(location="api.json")) == frozenset()
