"""Errors of the demo API, as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

Issue = dict[str, str]
"""``{"in", "pointer", "message"}`` of one fault of the input."""


class Problem(Exception):
    """A request that is answered with an error.

    Args:
        status: HTTP status.
        code: Short name of the rule that was met, such as ``shift-overlap``.
        detail: What is wrong, and what would help.
        issues: Every fault of the input.
        conflicts_with: Ids of what stands in the way.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        issues: Sequence[Issue] = (),
        conflicts_with: Sequence[str] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.issues = list(issues)
        self.conflicts_with = list(conflicts_with)

    def body(self) -> dict[str, Any]:
        """Return the document's ``Problem``."""
        body: dict[str, Any] = {
            "type": f"urn:workforce:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.issues:
            body["issues"] = self.issues
        if self.conflicts_with:
            body["conflictsWith"] = self.conflicts_with
        return body


def conflict(code: str, detail: str, *ids: str) -> Problem:
    """Return the 409 of a business rule; ``ids`` stand in the way."""
    return Problem(409, code, detail, conflicts_with=ids)


def invalid(issues: Sequence[Issue]) -> Problem:
    """Return the 422 that lists every fault of the input."""
    detail = "; ".join(issue["message"] for issue in issues[:3])
    return Problem(422, "invalid-input", detail, issues=issues)


def invalid_field(pointer: str, message: str, *, where: str = "body") -> Problem:
    """Return the 422 of one fault that no schema can find."""
    return invalid([{"in": where, "pointer": pointer, "message": message}])
