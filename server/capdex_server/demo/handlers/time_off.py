"""Time off: requests, decisions, balances."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import SHIFTS, TIME_OFF, WORKERS, Row, Tables


def list_time_off_requests(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listTimeOffRequests."""
    rows = tables.find(
        """
        SELECT timeOffRows.* FROM timeOffRows JOIN workers ON workers.id = workerId
        WHERE (:status IS NULL OR status IN (SELECT value FROM json_each(:status)))
            AND (:kind IS NULL OR kind = :kind)
            AND (:workerId IS NULL OR workerId = :workerId)
            AND (:teamId IS NULL OR workers.teamId = :teamId)
            AND (:from IS NULL OR endsOn >= :from)
            AND (:to IS NULL OR startsOn <= :to)
        """,
        call.values,
    )
    return page(in_order(rows, "startsOn"), call)


def request_time_off(tables: Tables, call: Call) -> Row:
    """Answer requestTimeOff."""
    body = {"reason": None, **call.body}
    tables.known(WORKERS, body["workerId"], "/workerId")
    worker = tables.get(WORKERS, body["workerId"])
    _check_dates(worker, body["startsOn"], body["endsOn"])
    _ensure_no_overlap(tables, body)
    values = {**body, "days": working_days(body["startsOn"], body["endsOn"])}
    _ensure_enough_left(tables, worker, values, also_pending=True)
    decision = {"status": "pending", "decisionNote": None, "decidedAt": None}
    return tables.add(TIME_OFF, {**values, **decision, "createdAt": tables.now})


def _check_dates(worker: Row, first: str, last: str) -> None:
    if last < first:
        raise invalid_field("/endsOn", "the last day is before the first")
    if first[:4] != last[:4]:
        raise invalid_field("/endsOn", "a request stays within one year; file one for each")
    if not working_days(first, last):
        raise invalid_field("/endsOn", "there is no working day among these")
    if first < worker["hiredOn"] or last > (worker["lastDay"] or last):
        raise conflict("not-employed", f"{worker['name']} is not employed on these days.", worker["id"])


def _ensure_no_overlap(tables: Tables, body: dict[str, Any]) -> None:
    rows = tables.find(
        """
        SELECT id FROM timeOff
        WHERE workerId = :workerId AND status IN ('pending', 'approved')
            AND startsOn <= :endsOn AND endsOn >= :startsOn
        """,
        body,
    )
    if rows:
        ids = [row["id"] for row in rows]
        raise conflict("time-off-overlap", "There is a request for some of these days already.", *ids)


def _ensure_enough_left(tables: Tables, worker: Row, request: Row, *, also_pending: bool) -> None:
    if request["kind"] != "vacation":
        return
    balance = _balance(tables, worker, int(request["startsOn"][:4]))
    left = balance["left"] - (balance["pending"] if also_pending else 0)
    if request["days"] > left:
        detail = f"The request is for {request['days']} days; {worker['name']} has {max(left, 0)} left."
        raise conflict("insufficient-balance", detail, worker["id"])


def working_days(first: str, last: str) -> int:
    """Count Mondays to Fridays between two dates, both included."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    weeks, rest = divmod((end - start).days + 1, 7)
    return weeks * 5 + sum((start + timedelta(day)).weekday() < 5 for day in range(rest))


def get_time_off_request(tables: Tables, call: Call) -> Row:
    """Answer getTimeOffRequest."""
    return tables.get(TIME_OFF, call["requestId"])


def withdraw_time_off(tables: Tables, call: Call) -> None:
    """Answer withdrawTimeOff."""
    request = tables.get(TIME_OFF, call["requestId"])
    if request["status"] not in {"pending", "approved"}:
        raise conflict("already-decided", f"The request is {request['status']}.", request["id"])
    if request["status"] == "approved" and request["startsOn"] <= str(tables.today):
        raise conflict("time-off-begun", "The absence has begun.", request["id"])
    tables.change(TIME_OFF, request["id"], {"status": "withdrawn", "decidedAt": tables.now})


def approve_time_off(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer approveTimeOff."""
    request = _pending(tables, call["requestId"])
    worker = tables.get(WORKERS, request["workerId"])
    _ensure_enough_left(tables, worker, request, also_pending=False)
    shift_ids = _shifts_during(tables, request)
    if shift_ids and not call.body["releaseShifts"]:
        detail = f"{worker['name']} has shifts on these days; set releaseShifts to make them open shifts."
        raise conflict("shifts-during-time-off", detail, *shift_ids)
    for shift_id in shift_ids:
        tables.change(SHIFTS, shift_id, {"workerId": None})
    return {
        "request": _decide(tables, request, "approved", call.body.get("note")),
        "releasedShiftIds": shift_ids,
    }


def _shifts_during(tables: Tables, request: Row) -> list[str]:
    rows = tables.find(
        """
        SELECT id FROM shiftRows
        WHERE workerId = :workerId AND status NOT IN ('cancelled', 'completed')
            AND substr(startsAt, 1, 10) <= :endsOn AND substr(endsAt, 1, 10) >= :startsOn
        ORDER BY startsAt
        """,
        request,
    )
    return [row["id"] for row in rows]


def decline_time_off(tables: Tables, call: Call) -> Row:
    """Answer declineTimeOff."""
    return _decide(tables, _pending(tables, call["requestId"]), "declined", call.body["reason"])


def _pending(tables: Tables, request_id: str) -> Row:
    request = tables.get(TIME_OFF, request_id)
    if request["status"] != "pending":
        raise conflict("already-decided", f"The request is {request['status']}.", request_id)
    return request


def _decide(tables: Tables, request: Row, status: str, note: str | None) -> Row:
    changes = {"status": status, "decisionNote": note, "decidedAt": tables.now}
    return tables.change(TIME_OFF, request["id"], changes)


def get_time_off_balance(tables: Tables, call: Call) -> Row:
    """Answer getTimeOffBalance."""
    worker = tables.get(WORKERS, call["workerId"])
    return _balance(tables, worker, call["year"] or tables.today.year)


def _balance(tables: Tables, worker: Row, year: int) -> Row:
    [sums] = tables.find(
        """
        SELECT
            coalesce(sum(days) FILTER (WHERE status = 'approved'), 0) AS taken,
            coalesce(sum(days) FILTER (WHERE status = 'pending'), 0) AS pending
        FROM timeOff
        WHERE workerId = :workerId AND kind = 'vacation' AND substr(startsOn, 1, 4) = :year
        """,
        {"workerId": worker["id"], "year": str(year)},
    )
    granted = worker["vacationDays"]
    left = granted - sums["taken"]
    return {"workerId": worker["id"], "year": year, "granted": granted, **sums, "left": left}


HANDLERS: Final[dict[str, Handler]] = {
    "listTimeOffRequests": list_time_off_requests,
    "requestTimeOff": request_time_off,
    "getTimeOffRequest": get_time_off_request,
    "withdrawTimeOff": withdraw_time_off,
    "approveTimeOff": approve_time_off,
    "declineTimeOff": decline_time_off,
    "getTimeOffBalance": get_time_off_balance,
}
