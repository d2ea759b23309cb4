"""Calls capabilities: SPEC section 3, in its order of checks."""

from __future__ import annotations

import threading
from collections import ChainMap, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread

from capdex_engine.call.credentials import Credential, Credentials, Tokens, place, preview
from capdex_engine.call.issues import Issue, bounded
from capdex_engine.call.masking import Masker
from capdex_engine.call.prepare import Draft, UndeclaredVariable, complete, draft, show
from capdex_engine.call.response import envelope
from capdex_engine.call.schema import SchemaChecker, UnusableSchema
from capdex_engine.call.sending import Sender, tell
from capdex_engine.call.tool import MISSING, Call, read_call, unsendable
from capdex_engine.call.transport import Transport
from capdex_engine.call.upstream_tool import CallTool, ToolDraft, draft_skill, draft_tool, tool_result
from capdex_engine.call.url import Target
from capdex_engine.call.validate import check
from capdex_engine.errors import (
    CapdexError,
    InvalidArguments,
    NotExecutable,
    UnknownCapability,
)
from capdex_engine.operation import MCP_METHOD, Availability, Operation, OperationDetails

MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""Default of the bytes read from an upstream."""
MAX_ANSWER_BYTES: Final = 64 * 1024
"""Default of the bytes of one result."""
_CHECKERS: Final = 256
_LARGE: Final = 128 * 1024
"""Bytes of a response that is read in a thread of its own."""


class Capabilities(Protocol):
    """What calls need of a catalog."""

    @property
    def revision(self) -> str:
        """Names the state of the catalog."""
        ...

    def get(self, name: str, *, allowed: Callable[[Operation], bool] | None = None) -> Operation | None:
        """Return the operation of this name or ``METHOD /path`` among the allowed."""
        ...

    def details(self, operation: Operation) -> OperationDetails:
        """Return its parameters, body, server and security."""
        ...

    def arguments_schema(self, operation: Operation, *, with_body: bool = False) -> dict[str, Any]:
        """Return the JSON Schema of its argument object."""
        ...

    def near(
        self, name: str, *, limit: int = 3, allowed: Callable[[Operation], bool] | None = None
    ) -> list[str]:
        """Return similar names."""
        ...


_Result = TypeVar("_Result")
Allows = Callable[[Operation], bool]
BeforeSend = Callable[[Operation], Awaitable[None]]


def _all(_: Operation) -> bool:
    return True


async def _aside(
    heavy: bool, work: Callable[..., _Result], *arguments: Any, limiter: CapacityLimiter | None = None
) -> _Result:
    """Do what may take long in a thread, so that the event loop stays free."""
    return await to_thread.run_sync(work, *arguments, limiter=limiter) if heavy else work(*arguments)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call whose arguments fit."""

    call: Call
    operation: Operation
    details: OperationDetails
    draft: Draft | ToolDraft
    drift: bool

    @property
    def drift_fields(self) -> dict[str, Any]:
        return {"drift": True, "schemaDigest": self.operation.schema_digest} if self.drift else {}


class Executor:
    """Executes capabilities of one catalog; safe to share between threads and tasks.

    Args:
        catalog: Where names are looked up.
        transport: Owns the network.
        credentials: Source -> security scheme -> credential.
        call_tool: Calls tools of MCP servers; without it none can be called.
        tokens: Gets access tokens for OAuth2 clients; without it only ready tokens are of use.
        clock: Monotonic seconds.
        timeout: Seconds for one call.
        max_response_bytes: Bytes read from an upstream.
        max_answer_bytes: Bytes of one result, unless the call says ``maxBytes``.
    """

    def __init__(
        self,
        catalog: Capabilities,
        *,
        transport: Transport,
        credentials: Credentials | None = None,
        tokens: Tokens | None = None,
        call_tool: CallTool | None = None,
        clock: Callable[[], float],
        timeout: float = 30.0,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._catalog = catalog
        self._send = Sender(transport, tokens, clock=clock, timeout=timeout, max_bytes=max_response_bytes)
        self._credentials = credentials or {}
        self._grants = tokens is not None
        self._tool_caller = call_tool
        self._timeout = timeout
        self._clock = clock
        self._max_answer_bytes = max_answer_bytes
        self._checkers: OrderedDict[tuple[str, str, str], SchemaChecker] = OrderedDict()
        self._lock = threading.Lock()
        # Of threads that work only one does: several large answers at once would hold up everything small.
        self._large = CapacityLimiter(1)

    def prepare(
        self, call: Mapping[str, Any], *, allows: Allows = _all, show_credentials: bool = False
    ) -> dict[str, Any]:
        """Return the request of a call without sending it: ``{method, url, headers, body | bodyBase64}``.

        A credential that is not held is replaced by a placeholder. Under drift, ``drift`` and the new
        ``schemaDigest`` are added.

        Args:
            call: Input of execute_capability.
            allows: Whether the caller may call an operation.
            show_credentials: Show them in clear; else ``***``.

        Raises:
            InvalidRequest, UnknownCapability, NotExecutable, InvalidArguments: In this order of checks.
        """
        return self._dry_run(self._ready(read_call(call), allows), masked=not show_credentials)

    async def execute(
        self,
        call: Mapping[str, Any] | Call,
        *,
        allows: Allows = _all,
        before_send: BeforeSend | None = None,
        credentials: Credentials | None = None,
    ) -> dict[str, Any]:
        """Call a capability and return the result of SPEC section 3 (of a dry run, what is prepared).

        Args:
            call: Input of execute_capability, or what :func:`read_call` made of it.
            allows: Whether the caller may call an operation; may be asked in another thread.
            before_send: Awaited last of all before anything is sent, never for a dry run; what it raises
                ends the call (quota, audit).
            credentials: The caller's own, which win over the executor's, scheme by scheme.

        Raises:
            InvalidRequest, UnknownCapability, NotExecutable, InvalidArguments, MissingCredentials: In this
                order of checks.
            UpstreamError, AddressRefused: From the transport; credentials are masked in them.
        """
        read = call if isinstance(call, Call) else read_call(call)
        ready = await _aside(isinstance(read.body, dict | list), self._ready, read, allows)
        if ready.call.dry_run:
            return self._dry_run(ready, credentials)
        if isinstance(ready.draft, ToolDraft):
            return await self._call_tool(ready, ready.draft, before_send)
        held = self._held(ready.operation, credentials)
        chosen = place(ready.operation, ready.details, held, grants=self._grants)
        if before_send is not None:
            await before_send(ready.operation)
        started = self._clock()
        response, masker = await self._send(ready.draft, chosen, ready.operation)
        elapsed = round((self._clock() - started) * 1000)
        answer = partial(
            envelope,
            response,
            masker,
            operation=ready.operation,
            max_bytes=ready.call.max_bytes or self._max_answer_bytes,
            extra={"elapsedMs": elapsed, "revision": self._catalog.revision, **ready.drift_fields},
        )
        return await _aside(len(response.body) > _LARGE, answer, limiter=self._large)

    async def _call_tool(
        self, ready: _Ready, drafted: ToolDraft, before_send: BeforeSend | None
    ) -> dict[str, Any]:
        if self._tool_caller is None:
            raise NotExecutable(ready.operation.name, "no MCP server is connected here")
        if before_send is not None:
            await before_send(ready.operation)
        started = self._clock()
        try:
            answer = await self._tool_caller(
                drafted.tool, drafted.arguments, source=drafted.source, timeout=self._timeout
            )
        except CapdexError as error:
            tell(error, ready.operation, Masker(()))
            raise
        elapsed = round((self._clock() - started) * 1000)
        meta = {"elapsedMs": elapsed, "revision": self._catalog.revision, **ready.drift_fields}
        budget = ready.call.max_bytes or self._max_answer_bytes
        return await _aside(True, tool_result, answer, meta, budget, limiter=self._large)

    def _dry_run(
        self, ready: _Ready, credentials: Credentials | None = None, *, masked: bool = True
    ) -> dict[str, Any]:
        if isinstance(ready.draft, ToolDraft):
            return {**ready.draft.show(), **ready.drift_fields}
        placements = preview(ready.operation, ready.details, self._held(ready.operation, credentials))
        return {**show(complete(ready.draft, placements, masked=masked)), **ready.drift_fields}

    def _held(self, operation: Operation, own: Credentials | None = None) -> Mapping[str, Credential]:
        held = self._credentials.get(operation.source, {})
        mine = (own or {}).get(operation.source)
        return ChainMap(mine, held) if mine else held  # type: ignore[arg-type] # nothing is written to it

    def _ready(self, call: Call, allows: Allows) -> _Ready:
        operation = self._permitted(call.name, allows)
        details = self._callable(operation)
        drift = call.schema_digest is not None and call.schema_digest != operation.schema_digest
        try:
            drafted, issues = self._draft(operation, details, call)
        except (UnusableSchema, UndeclaredVariable) as error:
            raise NotExecutable(operation.name, str(error)) from None
        if issues:
            raise self._invalid(operation, bounded(issues), drift)
        return _Ready(call, operation, details, drafted, drift)

    def _permitted(self, name: str, allows: Allows) -> Operation:
        operation = self._catalog.get(name, allowed=allows)
        if operation is None or not allows(operation):
            raise UnknownCapability(name, suggestions=self._catalog.near(name, allowed=allows))
        return operation

    def _callable(self, operation: Operation) -> OperationDetails:
        if operation.availability in {Availability.KEPT_OUT, Availability.NO_SERVER}:
            raise NotExecutable(operation.name, operation.reason or "it is not callable")
        details = self._catalog.details(operation)
        if details.base_url is None:
            raise NotExecutable(operation.name, "its document names no usable server: configure one")
        return details

    def _draft(
        self, operation: Operation, details: OperationDetails, call: Call
    ) -> tuple[Draft | ToolDraft, list[Issue]]:
        checker = self._checker(operation, details)
        wrong = unsendable(call)
        if wrong:
            # What is nested too deeply cannot be looked at any further.
            deep = any(one["keyword"] == "maxDepth" for one in wrong)
            further = [] if deep else check(details, call, checker)[1]
            return Draft(operation.method, "", Target("/", ""), (), (), (), None), wrong + further
        if operation.is_skill:
            return draft_skill(operation, call), []
        if operation.method == MCP_METHOD and (call.body is MISSING or call.body is None):
            call = replace(call, body={})
        arguments, issues = check(details, call, checker)
        if operation.method == MCP_METHOD:
            tool, further = draft_tool(operation, arguments.body)
            return tool, issues + ([] if issues else further)
        drafted, further = draft(operation, details, arguments, checker)
        return drafted, issues + further

    def _checker(self, operation: Operation, details: OperationDetails) -> SchemaChecker:
        key = (operation.source, operation.name, operation.schema_digest)
        with self._lock:
            found = self._checkers.get(key)
            if found is None:
                found = self._checkers[key] = SchemaChecker(details.definitions)
                if len(self._checkers) > _CHECKERS:
                    self._checkers.popitem(last=False)
            self._checkers.move_to_end(key)
            return found

    def _invalid(self, operation: Operation, issues: list[Issue], drift: bool) -> InvalidArguments:
        schema = self._catalog.arguments_schema(operation, with_body=True)
        extra = {"schemaDigest": operation.schema_digest, "changes": _changes(issues)} if drift else {}
        return InvalidArguments(operation.name, issues, schema, drift=drift, **extra)


def _changes(issues: list[Issue]) -> dict[str, list[str]]:
    """Say what changed, as far as the issues tell without the old schema."""
    return {
        "nowRequired": [each["in"] + each["pointer"] for each in issues if each["keyword"] == "required"],
        "noLongerKnown": [
            each["in"] + each["pointer"] for each in issues if each["keyword"] == "additionalProperties"
        ],
        "otherwise": [
            each["in"] + each["pointer"]
            for each in issues
            if each["keyword"] not in {"required", "additionalProperties"}
        ],
    }
