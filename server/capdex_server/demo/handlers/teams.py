"""Teams and the org chart."""

from __future__ import annotations

from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.problems import conflict
from capdex_server.demo.reading import Call
from capdex_server.demo.store import TEAMS, WORKERS, Row, Tables


def list_teams(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listTeams."""
    rows = tables.find(
        "SELECT * FROM teamRows WHERE :parentId IS NULL OR parentId = :parentId ORDER BY name", call.values
    )
    return {"items": rows}


def create_team(tables: Tables, call: Call) -> Row:
    """Answer createTeam."""
    _check(tables, call.body)
    return tables.add(TEAMS, {"parentId": None, "leadId": None, **call.body, "createdAt": tables.now})


def get_team(tables: Tables, call: Call) -> Row:
    """Answer getTeam."""
    return tables.get(TEAMS, call["teamId"])


def update_team(tables: Tables, call: Call) -> Row:
    """Answer updateTeam."""
    team = tables.get(TEAMS, call["teamId"])
    _check(tables, call.body, but=team["id"])
    _check_no_cycle(tables, team["id"], call.body.get("parentId"))
    return tables.change(TEAMS, team["id"], call.body)


def _check(tables: Tables, values: dict[str, Any], *, but: str = "") -> None:
    tables.known(TEAMS, values.get("parentId"), "/parentId")
    tables.known(WORKERS, values.get("leadId"), "/leadId")
    names = {"name": values.get("name"), "but": but}
    others = tables.find("SELECT id FROM teams WHERE name = :name AND id <> :but", names)
    if others:
        raise conflict("team-name-in-use", "Another team has this name.", others[0]["id"])


def _check_no_cycle(tables: Tables, team_id: str, parent_id: str | None) -> None:
    above = parent_id
    while above is not None:
        if above == team_id:
            raise conflict("team-below-itself", "A team cannot be moved below itself.", team_id)
        above = tables.get(TEAMS, above)["parentId"]


def get_org_chart(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer getOrgChart."""
    teams = tables.find(
        """
        SELECT teamRows.*, workers.name AS leadName
        FROM teamRows LEFT JOIN workers ON workers.id = leadId ORDER BY teamRows.name
        """
    )
    root = call["rootTeamId"]
    if root is not None:
        tables.get(TEAMS, root)
    roots = [team for team in teams if (team["id"] == root if root else team["parentId"] is None)]
    return {"roots": [_pruned(_node(team, teams), call["depth"]) for team in roots]}


def _node(team: Row, teams: list[Row]) -> Row:
    children = [_node(other, teams) for other in teams if other["parentId"] == team["id"]]
    return {
        "id": team["id"],
        "name": team["name"],
        "lead": team["leadId"] and {"id": team["leadId"], "name": team["leadName"]},
        "headcount": team["headcount"] + sum(child["headcount"] for child in children),
        "children": children,
    }


def _pruned(node: Row, depth: int) -> Row:
    """Cut a tree below some levels; its headcounts keep counting what was cut."""
    children = node["children"] if depth > 0 else []
    return {**node, "children": [_pruned(child, depth - 1) for child in children]}


HANDLERS: Final[dict[str, Handler]] = {
    "listTeams": list_teams,
    "createTeam": create_team,
    "getTeam": get_team,
    "updateTeam": update_team,
    "getOrgChart": get_org_chart,
}
