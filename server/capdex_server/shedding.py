"""Refuses requests beyond what the server can work on at once, before anything is done for them."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capdex_server.middleware import refusal

NEVER_SHED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""What tells how the server is doing; it costs next to nothing."""
RETRY_AFTER: Final = 1
"""Seconds."""


class Overloaded(Exception):
    """The last place was taken while a request's body came in."""


class Shedding:
    """Answers 503 when as many requests are in flight as there may be.

    A request is in flight from the end of its body on: clients that send theirs slowly, or never, keep
    nobody else out.
    """

    def __init__(self, app: ASGIApp, max_in_flight: int) -> None:
        self._app = app
        self._max = max_in_flight
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 503, or pass on."""
        if scope["type"] != "http" or scope["path"] in NEVER_SHED:
            return await self._app(scope, receive, send)
        entry = _Entry(self, receive)
        try:
            if self.full:
                raise Overloaded
            await self._app(scope, entry.receive, send)
        except Overloaded:
            response = refusal(
                503, "overloaded", "The server is busy. Try again in a second.", retryable=True
            )
            response.headers["Retry-After"] = str(RETRY_AFTER)
            await response(scope, receive, send)
        finally:
            self._in_flight -= entry.counted

    @property
    def full(self) -> bool:
        """Whether there is no room for another request."""
        return self._in_flight >= self._max

    def enter(self) -> None:
        """Count one more request in flight.

        Raises:
            Overloaded: There is no room.
        """
        if self.full:
            raise Overloaded
        self._in_flight += 1


class _Entry:
    """One request's way in; ``receive`` counts it when its body is complete."""

    def __init__(self, shedding: Shedding, receive: Receive) -> None:
        self._shedding = shedding
        self._receive = receive
        self.counted = False

    async def receive(self) -> Message:
        message = await self._receive()
        complete = message["type"] == "http.request" and not message.get("more_body", False)
        if complete and not self.counted:
            self._shedding.enter()
            self.counted = True
        return message
