"""``capdex token``: tokens for callers."""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

PREFIX: Final = "capdex_"
"""What every token begins with, so that scanners for secrets know one."""
_BYTES: Final = 32
_SCOPES: Final = ("search", "execute")


def new(
    name: Annotated[str, typer.Option(help="The caller's name, as logs show it.")] = "agent",
    tenant: Annotated[
        str | None, typer.Option(help="Whose quotas and credentials it uses (default: the name).")
    ] = None,
    scopes: Annotated[str, typer.Option(help="What it may do, with commas between.")] = ",".join(_SCOPES),
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it ceases to be valid: 90d, 12h, or 2026-12-31T00:00:00Z."),
    ] = None,
) -> None:
    """Make a token: it goes to standard output, once; its table for capdex.toml to standard error.

    capdex keeps the hash alone, so a token that is lost is made anew. To rotate one, let two be valid for a
    while: token_sha256 = ["OLD", "NEW"].

    Example: capdex token new --name support-agent --tenant support --expires 90d > token
    """
    wanted = _scopes(scopes)
    until = _expiry(expires, datetime.now(UTC))
    for option, text in (("--name", name), ("--tenant", tenant or name)):
        if not 0 < len(text.strip()) <= 100 or not text.isprintable():
            raise typer.BadParameter("must have 1 to 100 printable characters", param_hint=option)
    token = PREFIX + secrets.token_urlsafe(_BYTES)
    typer.echo(_table(token, name, tenant or name, wanted, until), err=True)
    if sys.stdout.isatty():
        typer.echo("The token, which is shown only now:", err=True)
    typer.echo(token)


def _scopes(text: str) -> list[str]:
    named = [one.strip() for one in text.split(",") if one.strip()]
    if not named or not set(named) <= set(_SCOPES):
        raise typer.BadParameter(f"must be of {', '.join(_SCOPES)}", param_hint="--scopes")
    return [scope for scope in _SCOPES if scope in named]


def _expiry(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    from capdex_server.audit_reading import moment

    try:
        ahead = text.strip()[-1:] in "smhdw"
        until = now + (now - moment(text, now)) if ahead else moment(text, now)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            "must be 90d, 12h, or a time such as 2026-12-31T00:00:00Z", param_hint="--expires"
        ) from None
    if until <= now:
        raise typer.BadParameter("lies in the past", param_hint="--expires")
    return until.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=until.microsecond > 0)


def _table(token: str, name: str, tenant: str, scopes: list[str], until: datetime | None) -> str:
    lines = [
        "# Paste into capdex.toml, and widen allow as needed.",
        "[[callers]]",
        f"name = {_quoted(name)}",
        f"tenant = {_quoted(tenant)}",
        f'token_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"',
    ]
    if until is not None:
        lines.append(f"expires = {until.isoformat().replace('+00:00', 'Z')}")
    if len(scopes) < len(_SCOPES):
        lines.append(f"scopes = {json.dumps(scopes)}")
    return "\n".join([*lines, "allow = [{ readOnly = true }]", ""])


def _quoted(text: str) -> str:
    """Return a text as TOML writes it; all its characters are printable."""
    return json.dumps(text, ensure_ascii=False)
