"""Sends a call: gets the access tokens that it needs, and once another where the upstream refuses one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from capdex_engine.call.credentials import Grant, Placement, Tokens
from capdex_engine.call.masking import Masker
from capdex_engine.call.prepare import Draft, complete
from capdex_engine.call.transport import REPEATABLE_METHODS, Request, Response, Transport
from capdex_engine.errors import CapdexError, UpstreamError
from capdex_engine.operation import Operation


class Sender:
    """Sends drafts with their credentials.

    Args:
        transport: Owns the network.
        tokens: Gets access tokens; None where no draft comes with a grant.
        clock: Monotonic seconds.
        timeout: Seconds for one call, tokens and a second attempt included.
        max_bytes: Bytes read of a response.
    """

    def __init__(
        self,
        transport: Transport,
        tokens: Tokens | None,
        *,
        clock: Callable[[], float],
        timeout: float,
        max_bytes: int,
    ) -> None:
        self._transport = transport
        self._tokens = tokens
        self._clock = clock
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def __call__(
        self, drafted: Draft, chosen: Sequence[Placement | Grant], operation: Operation
    ) -> tuple[Response, Masker]:
        """Return what came back, and the masker of every secret that was used.

        A 401 for a token that was got here means that nothing was done: the token is got anew and the call
        sent once more, whatever its method. Where there is no other token, the 401 is the answer.

        Raises:
            MissingCredentials: A token endpoint refuses its client.
            UpstreamError, AddressRefused: From the transport or for a token; credentials are masked.
        """
        placed = [each for each in chosen if isinstance(each, Placement)]
        if len(placed) == len(chosen):
            masker = _masker(placed)
            return await self._send(complete(drafted, placed), operation, masker, self._timeout), masker
        return await self._with_tokens(drafted, chosen, operation)

    async def _with_tokens(
        self, drafted: Draft, chosen: Sequence[Placement | Grant], operation: Operation
    ) -> tuple[Response, Masker]:
        ends = self._clock() + self._timeout
        placed = await self._placed(chosen, operation, ends)
        masker = _masker(chosen, placed)
        response = await self._send(complete(drafted, placed), operation, masker, self._left(ends))
        if response.status != 401:
            return response, masker
        try:
            fresh = await self._placed(chosen, operation, ends, placed)
        except CapdexError:
            # The upstream's own answer says more than why there is no other token.
            return response, masker
        if fresh == placed:
            return response, masker
        masker = _masker(chosen, placed, fresh)
        return await self._send(complete(drafted, fresh), operation, masker, self._left(ends)), masker

    async def _placed(
        self,
        chosen: Sequence[Placement | Grant],
        operation: Operation,
        ends: float,
        rejected: Sequence[Placement] = (),
    ) -> list[Placement]:
        """Return the credentials with a token for each grant; not again one that has been rejected."""
        assert self._tokens is not None  # noqa: S101 - grants are chosen only where it is there
        placed: list[Placement] = []
        for index, each in enumerate(chosen):
            if isinstance(each, Grant):
                old = rejected[index].secrets[0] if rejected else None
                try:
                    token = await self._tokens(each, timeout=self._left(ends), rejected=old)
                except CapdexError as error:
                    tell(error, operation, _masker(chosen, placed))
                    raise
                each = each.placed(token)
            placed.append(each)
        return placed

    async def _send(self, request: Request, operation: Operation, masker: Masker, timeout: float) -> Response:
        try:
            return await self._transport(
                request, source=operation.source, timeout=timeout, max_bytes=self._max_bytes
            )
        except CapdexError as error:
            tell(error, operation, masker)
            raise

    def _left(self, ends: float) -> float:
        """Return the seconds until then, as a message may show them; never none."""
        return max(round(ends - self._clock(), 1), 0.1)


def _masker(*used: Sequence[Placement | Grant]) -> Masker:
    return Masker(secret for part in used for each in part for secret in each.secrets)


def tell(error: CapdexError, operation: Operation, masker: Masker) -> None:
    """Make a failure of the network fit to be told to the caller of an operation."""
    error.message = masker.text(error.message)
    error.args = (error.message,)
    error.details = masker.json(error.details)
    error.capability = operation.name
    error.retryable = (
        error.retryable
        and isinstance(error, UpstreamError)
        and (operation.method in REPEATABLE_METHODS or operation.read_only)
    )
