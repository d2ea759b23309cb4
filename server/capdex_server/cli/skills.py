"""``capdex skills``: the remote skills that a caller has."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, JsonOption, Run, prepared
from capdex_server.cli.output import print_json, print_table, reported_errors


def skills(
    caller: Annotated[
        str | None, typer.Option(help="Show what this caller of the configuration has.", metavar="NAME")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the indexes of remote skills and list them; exit code 1 where none can be read.

    Without --caller it shows what this machine's user has: the skills of [skills], and workspaces' that
    belong to no tenant.

    Example: capdex skills --json
    """
    with reported_errors(as_json), prepared(None, config) as run:
        answer = _read(run, caller)
        if as_json:
            print_json(answer)
        else:
            _print(answer)
        if answer["problems"] and not answer["skills"]:
            raise typer.Exit(1)


def _read(run: Run, name: str | None) -> dict[str, Any]:
    import anyio

    from capdex_engine.errors import ConfigurationError
    from capdex_server.build import Builder
    from capdex_server.callers import LOCAL, Callers
    from capdex_server.outbound import Outbound
    from capdex_server.policy import Policy
    from capdex_server.skills import SERVER_LEVEL

    sources = {key: one for key, one in run.settings.sources.items() if key == SERVER_LEVEL}
    settings = run.settings.model_copy(update={"sources": sources})
    caller = LOCAL if name is None else Callers(settings).named(name)
    if caller is None:
        raise ConfigurationError(f"--caller: the configuration has no caller {name!r}.")
    if not sources or sources[SERVER_LEVEL].kind != "skills":
        raise ConfigurationError("No skills are configured: add a table [skills] with a url to capdex.toml.")

    async def read() -> dict[str, Any]:
        builder = Builder(settings, outbound=Outbound({}), encoder=None, environ=os.environ)
        snapshot = await builder()
        found = await builder.skills.for_caller(caller, snapshot, Policy(read_only=settings.read_only))
        inventory = builder.skills.inventory
        seen = {one for one in builder.skills.names if inventory.may_know(one, caller.tenant)}
        return {
            **found.to_json(),
            "problems": {one: why for one, why in inventory.problems.items() if one in seen},
            "dropped": [
                {"source": one, "index": fault.index, "reason": fault.reason}
                for one, faults in inventory.faults.items()
                if one in seen
                for fault in faults
            ],
        }

    return anyio.run(read)


def _print(answer: dict[str, Any]) -> None:
    print_table(
        f"{len(answer['skills'])} skills",
        ["name", "capability", "title", "description"],
        [[one["name"], one["capability"], one["title"], one["description"]] for one in answer["skills"]],
    )
