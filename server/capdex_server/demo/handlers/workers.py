"""Workers: from hiring to the last day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import TEAMS, WORKERS, Row, Tables

MAX_AVAILABILITY_DAYS: Final = 31

OPTIONAL: Final = {"phone": None, "teamId": None, "managerId": None, "address": None, "lastDay": None}


def list_workers(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listWorkers."""
    rows = tables.find(
        """
        SELECT * FROM workerRows
        WHERE (:name IS NULL OR instr(lower(name || ' ' || email), lower(:name)))
            AND (:teamId IS NULL OR teamId = :teamId)
            AND (:status IS NULL OR status IN (SELECT value FROM json_each(:status)))
            AND (:hiredAfter IS NULL OR hiredOn > :hiredAfter)
            AND (:skills IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(:skills) AS wanted
                WHERE wanted.value NOT IN (SELECT value FROM json_each(workerRows.skills))
            ))
        """,
        call.values,
    )
    return page(in_order(rows, call["sort"]), call)


def list_employees(tables: Tables, call: Call) -> list[Row]:
    """Answer listEmployees."""
    return tables.find("SELECT id, name, email FROM workerRows WHERE status <> 'left' ORDER BY name, id")


def hire_worker(tables: Tables, call: Call) -> Row:
    """Answer hireWorker."""
    body = dict(call.body)
    hourly_rate = body.pop("hourlyRate", None)
    worker = add_worker(tables, body)
    if hourly_rate is not None:
        rate = {"effectiveFrom": worker["hiredOn"], "hourlyRate": hourly_rate, "currency": "EUR"}
        tables.insert("rates", {"workerId": worker["id"], **rate})
    return worker


def add_worker(tables: Tables, values: dict[str, Any]) -> Row:
    """Check and add a worker; ``values`` are NewWorker's, without the hourly rate."""
    _check(tables, values)
    return tables.add(WORKERS, {**OPTIONAL, **values, "createdAt": tables.now})


def get_worker(tables: Tables, call: Call) -> Row:
    """Answer getWorker."""
    return tables.get(WORKERS, call["workerId"])


def update_worker(tables: Tables, call: Call) -> Row:
    """Answer updateWorker."""
    worker = tables.get(WORKERS, call["workerId"])
    if call.body.get("managerId") == worker["id"]:
        raise invalid_field("/managerId", "nobody is their own manager")
    _check(tables, call.body, but=worker["id"])
    return tables.change(WORKERS, worker["id"], call.body)


def _check(tables: Tables, values: dict[str, Any], *, but: str = "") -> None:
    tables.known(TEAMS, values.get("teamId"), "/teamId")
    tables.known(WORKERS, values.get("managerId"), "/managerId")
    others = tables.find(
        "SELECT id FROM workers WHERE email = :email AND id <> :but",
        {"email": values.get("email"), "but": but},
    )
    if others:
        raise conflict("email-in-use", "Another worker has this email address.", others[0]["id"])


def offboard_worker(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer offboardWorker."""
    worker = tables.get(WORKERS, call["workerId"])
    last_day = call.body["lastDay"]
    if worker["lastDay"] is not None:
        raise conflict("already-offboarded", f"The last day is already set to {worker['lastDay']}.")
    if last_day < worker["hiredOn"]:
        raise invalid_field("/lastDay", f"the last day is before the hiring on {worker['hiredOn']}")
    names = {"workerId": worker["id"], "after": last_day, "now": tables.now}
    released = _release_shifts_after(tables, names)
    tables.find(
        """
        UPDATE timeOff SET status = 'withdrawn', decidedAt = :now
        WHERE workerId = :workerId AND status = 'pending'
        """,
        names,
    )
    worker = tables.change(WORKERS, worker["id"], {"lastDay": last_day})
    return {"worker": worker, "releasedShiftIds": released}


def _release_shifts_after(tables: Tables, names: dict[str, Any]) -> list[str]:
    rows = tables.find(
        """
        UPDATE shifts SET workerId = NULL
        WHERE workerId = :workerId AND substr(startsAt, 1, 10) > :after AND startsAt > :now
            AND status <> 'cancelled'
        RETURNING id
        """,
        names,
    )
    return sorted(row["id"] for row in rows)


def get_worker_availability(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer getWorkerAvailability."""
    worker = tables.get(WORKERS, call["workerId"])
    first, last = date.fromisoformat(call["from"]), date.fromisoformat(call["to"])
    if not 0 <= (last - first).days < MAX_AVAILABILITY_DAYS:
        message = f"to has to lie 0 to {MAX_AVAILABILITY_DAYS - 1} days after from"
        raise invalid_field("/to", message, where="query")
    return {"workerId": worker["id"], "days": list(_days(tables, worker, first, last))}


def _days(tables: Tables, worker: Row, first: date, last: date) -> Iterator[Row]:
    for offset in range((last - first).days + 1):
        yield _day(tables, worker, str(first + timedelta(offset)))


def _day(tables: Tables, worker: Row, day: str) -> Row:
    names = {"workerId": worker["id"], "day": day}
    shifts = tables.find(
        """
        SELECT id FROM shifts
        WHERE workerId = :workerId AND status <> 'cancelled'
            AND :day BETWEEN substr(startsAt, 1, 10) AND substr(endsAt, 1, 10)
        ORDER BY startsAt
        """,
        names,
    )
    away = tables.find(
        """
        SELECT id FROM timeOff
        WHERE workerId = :workerId AND status = 'approved' AND :day BETWEEN startsOn AND endsOn
        """,
        names,
    )
    employed = worker["hiredOn"] <= day <= (worker["lastDay"] or day)
    state = "working" if shifts else "free"
    return {
        "date": day,
        "state": "not_employed" if not employed else "time_off" if away else state,
        "shiftIds": [row["id"] for row in shifts],
        "timeOffRequestId": away[0]["id"] if away else None,
    }


HANDLERS: Final[dict[str, Handler]] = {
    "listWorkers": list_workers,
    "listEmployees": list_employees,
    "hireWorker": hire_worker,
    "getWorker": get_worker,
    "updateWorker": update_worker,
    "offboardWorker": offboard_worker,
    "getWorkerAvailability": get_worker_availability,
}
