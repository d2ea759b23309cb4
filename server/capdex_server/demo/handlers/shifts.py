"""Shifts and the rota."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.contract import parse_moment
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import SHIFTS, TEAMS, WORKERS, Row, Tables, moment_text

LONGEST_SHIFT: Final = timedelta(hours=16)


def list_shifts(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listShifts."""
    rows = tables.find(
        """
        SELECT * FROM shiftRows
        WHERE (:from IS NULL OR substr(startsAt, 1, 10) >= :from)
            AND (:to IS NULL OR substr(startsAt, 1, 10) <= :to)
            AND (:workerId IS NULL OR workerId = :workerId)
            AND (:teamId IS NULL OR teamId = :teamId)
            AND (:status IS NULL OR status IN (SELECT value FROM json_each(:status)))
            AND (:open IS NULL OR (workerId IS NULL) = :open)
        """,
        call.values,
    )
    return page(in_order(rows, call["sort"]), call)


def schedule_shift(tables: Tables, call: Call) -> Row:
    """Answer scheduleShift."""
    values = {"workerId": None, "notes": None, **_in_utc(call.body)}
    tables.known(TEAMS, values["teamId"], "/teamId")
    tables.known(WORKERS, values["workerId"], "/workerId")
    _check_length(values)
    ensure_free(tables, values["workerId"], values)
    return tables.add(SHIFTS, {**values, "status": "draft", "createdAt": tables.now})


def get_shift(tables: Tables, call: Call) -> Row:
    """Answer getShift."""
    return tables.get(SHIFTS, call["shiftId"])


def reschedule_shift(tables: Tables, call: Call) -> Row:
    """Answer rescheduleShift."""
    shift = _changeable(tables, call["shiftId"])
    changes = _in_utc(call.body)
    moved = {**shift, **changes}
    _check_length(moved)
    ensure_free(tables, shift["workerId"], moved, ignored=[shift["id"]])
    return tables.change(SHIFTS, shift["id"], changes)


def cancel_shift(tables: Tables, call: Call) -> None:
    """Answer cancelShift."""
    shift = _changeable(tables, call["shiftId"])
    tables.change(SHIFTS, shift["id"], {"status": "cancelled"})


def assign_shift(tables: Tables, call: Call) -> Row:
    """Answer assignShift."""
    shift = _changeable(tables, call["shiftId"])
    worker_id = call.body["workerId"]
    tables.known(WORKERS, worker_id, "/workerId")
    ensure_free(tables, worker_id, shift, ignored=[shift["id"]])
    return tables.change(SHIFTS, shift["id"], {"workerId": worker_id})


def swap_shifts(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer swapShifts."""
    tables.known(SHIFTS, call.body["withShiftId"], "/withShiftId")
    one = _changeable(tables, call["shiftId"])
    other = _changeable(tables, call.body["withShiftId"])
    if None in (one["workerId"], other["workerId"]) or one["workerId"] == other["workerId"]:
        raise conflict("nothing-to-swap", "A swap needs two workers.", one["id"], other["id"])
    both = [one["id"], other["id"]]
    ensure_free(tables, one["workerId"], other, ignored=both)
    ensure_free(tables, other["workerId"], one, ignored=both)
    swapped = ((one, other["workerId"]), (other, one["workerId"]))
    return {"shifts": [tables.change(SHIFTS, row["id"], {"workerId": worker}) for row, worker in swapped]}


def get_daily_rota(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer getDailyRota."""
    tables.known(TEAMS, call["teamId"], "/teamId", where="query")
    shifts = tables.find(
        """
        SELECT shiftRows.*, teams.name AS teamName FROM shiftRows JOIN teams ON teams.id = teamId
        WHERE substr(startsAt, 1, 10) = :date AND status <> 'cancelled'
            AND (:includeDrafts OR status <> 'draft') AND (:teamId IS NULL OR teamId = :teamId)
        ORDER BY teamName, startsAt, shiftRows.id
        """,
        call.values,
    )
    names = {row["teamId"]: row.pop("teamName") for row in shifts}
    staffed = [row for row in shifts if row["workerId"]]
    return {
        "date": call["date"],
        "weekday": f"{date.fromisoformat(call['date']):%A}",
        "headcount": len({row["workerId"] for row in staffed}),
        "teams": [_team(team_id, name, staffed) for team_id, name in names.items()],
        "openShifts": [row for row in shifts if not row["workerId"]],
        "away": _away(tables, call),
    }


def _team(team_id: str, name: str, shifts: list[Row]) -> Row:
    return {"teamId": team_id, "name": name, "shifts": [row for row in shifts if row["teamId"] == team_id]}


def _away(tables: Tables, call: Call) -> list[Row]:
    return tables.find(
        """
        SELECT workerId, workers.name AS name, kind, endsOn AS until
        FROM timeOff JOIN workers ON workers.id = workerId
        WHERE status = 'approved' AND :date BETWEEN startsOn AND endsOn
            AND (:teamId IS NULL OR workers.teamId = :teamId)
        ORDER BY workers.name
        """,
        call.values,
    )


def publish_rota(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer publishRota."""
    team = tables.get(TEAMS, call.body["teamId"])
    if call.body["to"] < call.body["from"]:
        raise invalid_field("/to", "to is before from")
    drafts = tables.find(
        """
        SELECT id, workerId FROM shifts
        WHERE teamId = :teamId AND status = 'draft' AND substr(startsAt, 1, 10) BETWEEN :from AND :to
        ORDER BY startsAt, id
        """,
        {**call.body, "teamId": team["id"]},
    )
    open_ids = [row["id"] for row in drafts if row["workerId"] is None]
    if open_ids and not call.body["allowOpenShifts"]:
        raise conflict("open-shifts", "Some of the shifts have no worker yet.", *open_ids)
    ids = [row["id"] for row in drafts]
    for shift_id in ids:
        tables.change(SHIFTS, shift_id, {"status": "published"})
    return {"publishedShiftIds": ids}


def ensure_free(tables: Tables, worker_id: str | None, shift: Row, *, ignored: Sequence[str] = ()) -> None:
    """Check that a worker can work at a shift's times; a 409 says what stands in the way.

    Args:
        tables: The tables.
        worker_id: ``None`` for an open shift, which anything goes with.
        shift: Holds ``startsAt`` and ``endsAt``, in UTC.
        ignored: Ids of shifts that do not count.
    """
    if worker_id is None:
        return
    worker = tables.get(WORKERS, worker_id)
    first, last = shift["startsAt"][:10], shift["endsAt"][:10]
    if first < worker["hiredOn"] or last > (worker["lastDay"] or last):
        raise conflict("not-employed", f"{worker['name']} is not employed at that time.", worker_id)
    names = {"workerId": worker_id, "ignored": list(ignored), "first": first, "last": last}
    _ensure_not_working(tables, worker, {**shift, **names})
    _ensure_not_away(tables, worker, names)


def _ensure_not_working(tables: Tables, worker: Row, names: dict[str, Any]) -> None:
    rows = tables.find(
        """
        SELECT id, startsAt, endsAt FROM shifts
        WHERE workerId = :workerId AND status <> 'cancelled' AND startsAt < :endsAt AND endsAt > :startsAt
            AND id NOT IN (SELECT value FROM json_each(:ignored))
        """,
        names,
    )
    if rows:
        detail = f"{worker['name']} works from {rows[0]['startsAt']} to {rows[0]['endsAt']} already."
        raise conflict("shift-overlap", detail, *(row["id"] for row in rows))


def _ensure_not_away(tables: Tables, worker: Row, names: dict[str, Any]) -> None:
    rows = tables.find(
        """
        SELECT id, startsOn, endsOn FROM timeOff
        WHERE workerId = :workerId AND status = 'approved' AND startsOn <= :last AND endsOn >= :first
        """,
        names,
    )
    if rows:
        detail = f"{worker['name']} is away from {rows[0]['startsOn']} to {rows[0]['endsOn']}."
        raise conflict("on-time-off", detail, *(row["id"] for row in rows))


def _changeable(tables: Tables, shift_id: str) -> Row:
    shift = tables.get(SHIFTS, shift_id)
    if shift["status"] in {"completed", "cancelled"}:
        raise conflict(f"shift-{shift['status']}", f"The shift is {shift['status']}.", shift_id)
    return shift


def _in_utc(values: dict[str, Any]) -> dict[str, Any]:
    moments: dict[str, Any] = {
        name: moment_text(parse_moment(values[name])) for name in ("startsAt", "endsAt") if name in values
    }
    return {**values, **moments}


def _check_length(shift: Row) -> None:
    length = parse_moment(shift["endsAt"]) - parse_moment(shift["startsAt"])
    if not timedelta(0) < length <= LONGEST_SHIFT:
        raise invalid_field("/endsAt", "a shift ends after its start, at most 16 hours later")
    if timedelta(minutes=shift["breakMinutes"]) >= length:
        raise invalid_field("/breakMinutes", "the break is as long as the shift")


HANDLERS: Final[dict[str, Handler]] = {
    "listShifts": list_shifts,
    "scheduleShift": schedule_shift,
    "getShift": get_shift,
    "rescheduleShift": reschedule_shift,
    "cancelShift": cancel_shift,
    "assignShift": assign_shift,
    "swapShifts": swap_shifts,
    "getDailyRota": get_daily_rota,
    "publishRota": publish_rota,
}
