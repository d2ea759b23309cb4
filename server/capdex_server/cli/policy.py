"""``capdex policy``: what a caller may call, and which rule says so. For the operator."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, SpecOption, prepared
from capdex_server.cli.output import print_json, print_table, reported_errors

if TYPE_CHECKING:
    from capdex_engine.catalog import Catalog
    from capdex_engine.operation import Operation
    from capdex_server.callers import Caller
    from capdex_server.config import Settings
    from capdex_server.verdict import RuleCheck, Verdict

CallerArgument = Annotated[str, typer.Argument(metavar="CALLER", help="The name of a caller.")]
ReadOnlyOption = Annotated[
    bool, typer.Option("--read-only", help="Decide as a server that was started with --read-only does.")
]


def explain(
    caller: CallerArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A capability's name, or 'METHOD /path'.")],
    spec: SpecOption = None,
    config: ConfigOption = None,
    read_only: ReadOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say whether a caller may call a capability, and which rule decides.

    To the caller itself, forbidden and unknown look the same. Exit code 0: there is an answer, yes or no;
    1: there is no such capability; 2: no such caller, or wrong usage.

    Example: capdex policy explain support-agent refundPayment
    """
    from capdex_server.cli.direct import load_snapshot
    from capdex_server.policy import Policy
    from capdex_server.verdict import judge

    with reported_errors(as_json), prepared(spec, config) as run:
        who = _caller(run.settings, caller)
        snapshot = load_snapshot(run)
        # Skills of several tenants may have one name: the caller's own is asked about.
        own = snapshot.catalog.get(name, allowed=partial(snapshot.sees, who))
        operation = own or _operation(snapshot.catalog, name)
        policy = Policy(read_only=run.settings.read_only or read_only)
        seen = snapshot.sees(who, operation)
        verdict = judge(policy, who, operation, snapshot.aliases, seen=seen)
        print_json(_to_json(who, operation, verdict)) if as_json else _print(who, operation, verdict)


def list_permitted(
    caller: CallerArgument,
    spec: SpecOption = None,
    config: ConfigOption = None,
    read_only: ReadOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Count what a caller may call, by source; with --json, list it.

    Example: capdex policy list support-agent --json
    """
    from capdex_server.cli.direct import load_snapshot
    from capdex_server.policy import Policy

    with reported_errors(as_json), prepared(spec, config) as run:
        who = _caller(run.settings, caller)
        snapshot = load_snapshot(run)
        mask = snapshot.mask(who, Policy(read_only=run.settings.read_only or read_only))
        operations = snapshot.catalog.operations
        permitted = [one for one, may in zip(operations, mask.tolist(), strict=True) if may]
        if as_json:
            print_json([_row(one) for one in permitted])
        else:
            _print_counts(who, permitted, operations)


def _caller(settings: Settings, name: str) -> Caller:
    from capdex_engine.errors import ConfigurationError
    from capdex_server.callers import Callers

    known = Callers(settings).by_name
    if name not in known:
        names = ", ".join(sorted(known))
        raise ConfigurationError(f"callers: there is no caller {name!r}; there are: {names}.")
    return known[name]


def _operation(catalog: Catalog, name: str) -> Operation:
    """Return what is asked about, those that are kept or left out too."""
    from capdex_engine.errors import UnknownCapability

    found = catalog.get(name)
    if found is None:
        key = " ".join(name.split()).partition(" ")
        out = [one for one in catalog.kept_out if name == one.name or _is_at(one, key[0], key[2])]
        found = out[0] if len(out) == 1 else None
    if found is None:
        raise UnknownCapability(name, suggestions=catalog.near(name))
    return found


def _is_at(operation: Operation, method: str, path: str) -> bool:
    return bool(path) and (operation.method, operation.path) == (method.upper(), path)


def _row(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "source": operation.source,
        "method": operation.method,
        "path": operation.path,
        "readOnly": operation.read_only,
        "executable": operation.executable,
    }


def _to_json(caller: Caller, operation: Operation, verdict: Verdict) -> dict[str, Any]:
    return {
        "caller": caller.name,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
        "capability": _row(operation),
        "allowed": verdict.allowed,
        "reason": verdict.reason,
        "rule": verdict.rule.to_json() if verdict.rule else None,
        "message": _message(caller, verdict),
    }


def _message(caller: Caller, verdict: Verdict) -> str:
    near = f" The nearest is {verdict.rule}." if verdict.rule else f" {caller.name} has none at all."
    return {
        "left_out": "The source's settings leave it out: it is there for no caller.",
        "other_tenant": "It is of a workspace that is for other tenants, whatever the rules say.",
        "read_only": "The server is read-only, and it can change something.",
        "deny": f"{verdict.rule} fits.",
        "allow": f"{verdict.rule} fits, and no deny rule does.",
        "no_allow_rule": f"No allow rule fits.{near}",
    }[verdict.reason]


def _print(caller: Caller, operation: Operation, verdict: Verdict) -> None:
    may = "may" if verdict.allowed else "may not"
    typer.echo(f"{caller.name} {may} call {operation.name} ({operation.method} {operation.path}).")
    typer.echo(_message(caller, verdict))
    if verdict.rule is not None:
        _print_fields(verdict.rule)
    lacking = sorted({"search", "execute"} - caller.scopes)
    if lacking:
        typer.echo(f"Its token lacks the scope {' and '.join(lacking)}, whatever the rules say.")
    if verdict.allowed and operation.reason:
        typer.echo(f"It is not callable: {operation.reason}")


def _print_fields(rule: RuleCheck) -> None:
    for one in rule.fields:
        wanted, values = (
            str(given).lower() if isinstance(given, bool) else ", ".join(given) or "none"
            for given in (one.wanted, one.values)
        )
        typer.echo(f"  {'fits    ' if one.fits else 'does not'}  {one.field}: {wanted}  (it has: {values})")


def _print_counts(caller: Caller, permitted: list[Operation], operations: tuple[Operation, ...]) -> None:
    mine, all_ = (Counter(one.source for one in some) for some in (permitted, operations))
    rows = [[source, str(mine[source]), str(all_[source])] for source in sorted(all_)]
    print_table(
        f"{caller.name} may call {len(permitted)} of {len(operations)} operations",
        ["source", "may call", "in search"],
        rows,
    )
