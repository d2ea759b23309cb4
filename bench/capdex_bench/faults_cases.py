"""What a faulty upstream does, one operation for each, and what a caller must be told.

A fault is a script of steps that :mod:`capdex_bench.faults_upstream` plays on a raw connection.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any, Final

BIG: Final = 50 * 1000 * 1000
"""Bytes of the largest answer."""
KEY_HEADER: Final = "X-Key"
"""Carries the planted credential; its value stands in every request."""
TIMEOUT: Final = "upstream_timeout"
UNREACHABLE: Final = "upstream_unreachable"
PROTOCOL: Final = "upstream_protocol_error"


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more, and keep the connection open."""


@dataclass(frozen=True, slots=True)
class Reset:
    """End the connection with a TCP reset."""


@dataclass(frozen=True, slots=True)
class Echo:
    """Answer with the request's own credential, in every form that a server might give it."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Send a piece again and again: ``times``, or until the other side is gone; slowly with ``pause``."""

    piece: bytes
    times: int | None = None
    pause: float = 0.0


Step = bytes | Hang | Reset | Echo | Repeat


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: how it is played and what comes of it."""

    name: str
    """Also its operation's id."""
    text: str
    steps: tuple[Step, ...]
    get: str
    """An error's code, or the status; with a plus where the answer is truncated."""
    post: str = ""
    """The same for POST, where it differs."""
    place: str = "plain"
    """Which of the upstream's addresses; see :data:`PLACES`."""
    slow: bool = False
    """Whether the call lasts until its time limit."""

    @property
    def retryable(self) -> bool | None:
        """Whether a GET may be repeated; None where there is an answer."""
        if self.get[0].isdigit():
            return None
        return self.place not in NO_RETRY

    def expected(self, method: str) -> str:
        """Return what a call of this method gives."""
        return (self.post or self.get) if method == "POST" else self.get


PLACES: Final = {
    "plain": "http",
    "closed": "http",
    "self_signed": "https",
    "expired": "https",
    "wrong_host": "https",
    "https_to_plain": "https",
    "http_to_tls": "http",
    "tls_hang": "https",
}
"""Address of the upstream -> the scheme that it is called by."""
NO_RETRY: Final = frozenset({"self_signed", "expired", "wrong_host", "https_to_plain"})
"""Where another try helps nothing."""


def head(*headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """Return an answer's head."""
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", *headers, "", ""]).encode("latin-1")


def whole(
    body: bytes,
    *headers: str,
    status: str = "200 OK",
    kind: str = "application/json",
    keep: bool = False,
) -> bytes:
    """Return an answer with the right length; ``keep`` leaves the connection open."""
    last = () if keep else ("Connection: close",)
    return head(f"Content-Length: {len(body)}", *headers, *last, status=status, kind=kind) + body


def _gzip_bomb() -> bytes:
    return gzip.compress(b"\0" * BIG, 9)


_OK: Final = b'{"ok": true}'
_HALF: Final = head("Content-Length: 100") + b'{"half": '
_CHUNKED: Final = head("Transfer-Encoding: chunked")
_ROW: Final = b'{"id": 1234567, "name": "a row among many", "tags": ["x", "y"], "price": 12.5},'
_TWO: Final = whole(_OK, keep=True) + whole(b'{"smuggled": true}', keep=True)
_DEEP: Final = 200_000
_LINE: Final = b"HTTP/1.1 200 OK\r\n"
_LONG: Final = b"X-Long: " + b"a" * 8000 + b"\r\n"

BASICS: Final = (
    Fault("hang", "accepts, never answers", (Hang(),), TIMEOUT, slow=True),
    Fault("refused", "connection refused", (), UNREACHABLE, place="closed"),
    Fault("resetBefore", "reset before the answer", (Reset(),), PROTOCOL),
    Fault("closedBefore", "closed before the answer", (), PROTOCOL),
    Fault("resetInHead", "reset amid the headers", (b"HTTP/1.1 200 OK\r\nContent-Ty", Reset()), PROTOCOL),
    Fault("resetInBody", "reset amid the body", (_HALF, Reset()), PROTOCOL, "200+"),
    Fault("stallInBody", "stalls amid the body", (_HALF, Hang()), TIMEOUT, "200+", slow=True),
    Fault(
        "dripHead",
        "headers byte by byte",
        (b"HTTP/1.1 200 OK\r\nX-A: ", Repeat(b"a", None, 0.05)),
        TIMEOUT,
        slow=True,
    ),
    Fault(
        "dripBody",
        "body byte by byte",
        (head("Content-Length: 100000"), Repeat(b"1", None, 0.05)),
        TIMEOUT,
        "200+",
        slow=True,
    ),
)
LENGTHS: Final = (
    Fault("lengthTooLong", "Content-Length larger than the body", (_HALF,), PROTOCOL, "200+"),
    Fault("lengthTooShort", "Content-Length smaller than the body", (whole(_OK) + b"surplus",), "200"),
    Fault("secondAnswer", "a second answer after the first", (_TWO, Hang()), "200"),
    Fault(
        "twoLengths",
        "two different Content-Lengths",
        (head("Content-Length: 12", "Content-Length: 5") + _OK,),
        PROTOCOL,
    ),
    Fault("negativeLength", "negative Content-Length", (head("Content-Length: -5") + _OK,), PROTOCOL),
    Fault("badChunks", "broken chunked coding", (_CHUNKED + b"5\r\n[1,2,\r\nZZ\r\n",), PROTOCOL, "200+"),
    Fault("chunksBreakOff", "chunked body without its end", (_CHUNKED + b"2\r\n[1\r\n",), PROTOCOL, "200+"),
    Fault("endlessChunkSize", "a chunk size without end", (_CHUNKED, Repeat(b"0" * 4096)), PROTOCOL, "200+"),
    Fault("tinyChunks", "endless chunks of one byte", (_CHUNKED, Repeat(b"1\r\n1\r\n" * 4096)), "200+"),
    Fault("bodyWithout", "204 with a body", (whole(_OK, status="204 No Content", keep=True), Hang()), "204"),
)
ENDLESS: Final = (
    Fault("endlessBody", "a body without end", (head(), Repeat(b"[1,2,3,4]," * 6400)), "200+"),
    Fault("bigJson", "50 MB of JSON", (head(), b"[", Repeat(_ROW * 800, BIG // (800 * len(_ROW)))), "200+"),
    Fault("endlessHead", "headers without end", (_LINE, Repeat(b"X-A: 1\r\n" * 500)), PROTOCOL),
    Fault("hugeHead", "200 KB of headers", (_LINE, Repeat(_LONG, 25), b"\r\n"), PROTOCOL),
    Fault(
        "manyInterim",
        "100 Continue without end",
        (Repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 500),),
        PROTOCOL,
    ),
    Fault("gzipBomb", "50 MB in 50 KB of gzip", (whole(_gzip_bomb(), "Content-Encoding: gzip"),), "200+"),
    Fault(
        "emptyGzip",
        "endless empty gzip members",
        (head("Content-Encoding: gzip"), Repeat(gzip.compress(b"") * 2000)),
        "200+",
    ),
)
CODINGS: Final = (
    Fault("brokenGzip", "broken gzip", (whole(b"\x1f\x8bnot", "Content-Encoding: gzip"),), PROTOCOL, "200+"),
    Fault(
        "gzipBreaksOff",
        "gzip that breaks off",
        (whole(gzip.compress(_OK * 9)[:-9], "Content-Encoding: gzip"),),
        PROTOCOL,
        "200+",
    ),
    Fault(
        "nestedGzip",
        "gzip in gzip",
        (whole(gzip.compress(gzip.compress(_OK)), "Content-Encoding: gzip, gzip"),),
        "200",
    ),
    Fault("unknownCoding", "an unknown content coding", (whole(b"\x01\x02", "Content-Encoding: zz"),), "200"),
)
TEXTS: Final = (
    Fault("deepJson", "JSON nested 200,000 deep", (whole(b"[" * _DEEP + b"]" * _DEEP),), "200+"),
    Fault("brokenJson", "broken JSON", (whole(b'{"a": [1, 2'),), "200"),
    Fault("invalidUtf8", "JSON of invalid UTF-8", (whole(b'{"a": "\xff\xfe\xc3"}'),), "200"),
    Fault(
        "wrongCharset",
        "a charset that there is not",
        (whole("é".encode(), kind="text/plain; charset=klingon"),),
        "200",
    ),
    Fault("withBom", "JSON after a byte order mark", (whole(b"\xef\xbb\xbf" + _OK),), "200"),
    Fault("notANumber", "JSON with NaN", (whole(b"[NaN, 1e999]"),), "200"),
    Fault("htmlAsJson", "a page of HTML as JSON", (whole(b"<html>sorry</html>"),), "200"),
)
STATUSES: Final = (
    Fault("redirectAway", "redirect to another origin", (), "302"),
    Fault("redirectLoop", "redirect to itself", (), "302"),
    Fault("redirectPrivate", "redirect to a link-local address", (), "302"),
    Fault("redirectFile", "redirect to file:", (), "302"),
    Fault("tooMany", "429 with Retry-After", (whole(_OK, "Retry-After: 7", status="429 Slow"),), "429"),
    Fault(
        "unavailable",
        "503 with a Retry-After date",
        (whole(_OK, "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT", status="503 Later"),),
        "503",
    ),
    Fault("garbage", "no HTTP", (b"SSH-2.0-OpenSSH_9.9\r\n",), PROTOCOL),
    Fault("oldHttp", "HTTP/0.9", (b"<html>hello</html>",), PROTOCOL),
    Fault("switching", "101 that nobody asked for", (b"HTTP/1.1 101 Switching\r\n\r\n", Hang()), PROTOCOL),
    Fault("oddStatus", "status 999", (whole(_OK, status="999 Odd"),), "999"),
    Fault("echo", "the credential in headers and body", (Echo(),), "200"),
    Fault("echoGarbage", "the credential in what is no HTTP", (b"GARBAGE ", Echo()), PROTOCOL),
)
TLS: Final = (
    Fault("selfSigned", "self-signed certificate", (), UNREACHABLE, place="self_signed"),
    Fault("expired", "expired certificate", (), UNREACHABLE, place="expired"),
    Fault("wrongHost", "certificate of another host", (), UNREACHABLE, place="wrong_host"),
    Fault("httpsToPlain", "https where plain http is spoken", (), UNREACHABLE, place="https_to_plain"),
    Fault("httpToTls", "http where TLS is spoken", (), PROTOCOL, place="http_to_tls"),
    Fault("tlsHang", "never answers the TLS handshake", (), TIMEOUT, place="tls_hang", slow=True),
)
REDIRECTS: Final = {
    "redirectAway": "http://elsewhere.example/",
    "redirectLoop": "/redirectLoop",
    "redirectPrivate": "http://169.254.169.254/latest/meta-data",
    "redirectFile": "file:///etc/hosts",
}
FAULTS: Final[tuple[Fault, ...]] = (
    *BASICS,
    *LENGTHS,
    *ENDLESS,
    *CODINGS,
    *TEXTS,
    *STATUSES,
    *TLS,
)
FINE: Final = Fault("fine", "a sound answer", (whole(_OK, keep=True),), "200")
HEALTHY: Final = Fault("healthy", "a sound answer of another API", FINE.steps, "200", place="healthy")
SOUND: Final = (FINE, HEALTHY)


def document(place: str, server: str) -> dict[str, Any]:
    """Return the document of one of the upstream's addresses: GET and POST for each of its faults."""
    here = [fault for fault in (*FAULTS, *SOUND) if fault.place == place]
    paths = {
        f"/{fault.name}": {"get": _operation(fault, "GET"), "post": _operation(fault, "POST")}
        for fault in here
    }
    scheme = {"type": "apiKey", "in": "header", "name": KEY_HEADER}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Faults, {place}", "version": "1"},
        "servers": [{"url": server}],
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": scheme}},
        "paths": paths,
    }


def _operation(fault: Fault, method: str) -> dict[str, Any]:
    answers = {"200": {"description": "what comes"}}
    return {"operationId": name_of(fault, method), "summary": fault.text, "responses": answers}


def name_of(fault: Fault, method: str) -> str:
    """Return the operation's id."""
    return fault.name if method == "GET" else f"{fault.name}Post"


def said(answer: dict[str, Any]) -> str:
    """Return what came of a call, as :attr:`Fault.get` writes it."""
    if "error" in answer:
        return str(answer["error"]["code"])
    return f"{answer['status']}{'+' if answer['truncated'] else ''}"


def serialised(place: str, server: str) -> bytes:
    """Return the document as it lies on disk."""
    return json.dumps(document(place, server)).encode()
