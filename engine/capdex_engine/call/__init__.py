"""Calls: arguments are checked, written by style and media type, sent, and the answer is read."""

from capdex_engine.call.credentials import Credential, Credentials, Grant, Tokens
from capdex_engine.call.executor import Executor
from capdex_engine.call.tool import EXECUTE_INPUT, Call, read_call
from capdex_engine.call.transport import Request, Response, Transport
from capdex_engine.call.upstream_tool import CallTool, ToolResult

__all__ = [
    "EXECUTE_INPUT",
    "Call",
    "CallTool",
    "Credential",
    "Credentials",
    "Executor",
    "Grant",
    "Request",
    "Response",
    "Tokens",
    "ToolResult",
    "Transport",
    "read_call",
]
