"""Hourly rates and timesheets."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import TIMESHEETS, WORKERS, Row, Tables


def list_rates(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listRates."""
    return {"items": _rates(tables, tables.get(WORKERS, call["workerId"])["id"])}


def set_hourly_rate(tables: Tables, call: Call) -> Row:
    """Answer setHourlyRate."""
    worker = tables.get(WORKERS, call["workerId"])
    rate = {"workerId": worker["id"], "effectiveFrom": call["effectiveFrom"], **call.body}
    approved = tables.find(
        """
        SELECT id FROM timesheets
        WHERE workerId = :workerId AND status = 'approved' AND date(weekStart, '+6 days') >= :effectiveFrom
        """,
        rate,
    )
    if approved:
        ids = [row["id"] for row in approved]
        raise conflict("week-approved", "The pay of these weeks is approved; choose a later date.", *ids)
    if any(other["currency"] != rate["currency"] for other in _rates(tables, worker["id"])):
        raise conflict("currency-differs", "The worker is paid in another currency.", worker["id"])
    tables.find("DELETE FROM rates WHERE workerId = :workerId AND effectiveFrom = :effectiveFrom", rate)
    tables.insert("rates", rate)
    return rate


def _rates(tables: Tables, worker_id: str) -> list[Row]:
    return tables.find(
        "SELECT * FROM rates WHERE workerId = :workerId ORDER BY effectiveFrom DESC", {"workerId": worker_id}
    )


def list_timesheets(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listTimesheets."""
    rows = tables.find(
        """
        SELECT * FROM timesheetRows
        WHERE (:workerId IS NULL OR workerId = :workerId) AND (:status IS NULL OR status = :status)
            AND (:weekStart IS NULL OR weekStart = :weekStart)
        """,
        call.values,
    )
    return page(in_order(rows, "-weekStart"), call)


def submit_timesheet(tables: Tables, call: Call) -> Row:
    """Answer submitTimesheet."""
    body = call.body
    tables.known(WORKERS, body["workerId"], "/workerId")
    _check_week(body)
    earlier = tables.find(
        "SELECT id FROM timesheets WHERE workerId = :workerId AND weekStart = :weekStart", body
    )
    if earlier:
        raise conflict("timesheet-exists", "The hours of this week are handed in.", earlier[0]["id"])
    state = {"status": "submitted", "submittedAt": tables.now, "approvedAt": None}
    return tables.add(TIMESHEETS, {**body, **_pay(tables, body), **state})


def _check_week(body: dict[str, Any]) -> None:
    monday = date.fromisoformat(body["weekStart"])
    if monday.weekday() != 0:
        raise invalid_field("/weekStart", f"{monday} is a {monday:%A}; name the week by its Monday")
    for index, entry in enumerate(body["entries"]):
        if not timedelta(0) <= date.fromisoformat(entry["date"]) - monday < timedelta(7):
            raise invalid_field(f"/entries/{index}/date", f"{entry['date']} is not in the week of {monday}")


def _pay(tables: Tables, sheet: Row) -> Row:
    """Add up hours and pay, each day at the rate that holds on it."""
    rates = _rates(tables, sheet["workerId"])
    pay = sum(
        (Decimal(str(entry["hours"])) * _rate_on(rates, entry["date"]) for entry in sheet["entries"]),
        Decimal(),
    )
    return {
        "totalHours": sum(entry["hours"] for entry in sheet["entries"]),
        "grossPay": int(pay.quantize(Decimal(1), ROUND_HALF_UP)),
        "currency": rates[0]["currency"],
    }


def _rate_on(rates: list[Row], day: str) -> int:
    for rate in rates:
        if rate["effectiveFrom"] <= day:
            return int(rate["hourlyRate"])
    raise conflict("no-hourly-rate", f"The worker has no hourly rate on {day}; use setHourlyRate first.")


def approve_timesheet(tables: Tables, call: Call) -> Row:
    """Answer approveTimesheet."""
    sheet = tables.get(TIMESHEETS, call["timesheetId"])
    if sheet["status"] == "approved":
        raise conflict("already-approved", "The timesheet is approved.", sheet["id"])
    state = {"status": "approved", "approvedAt": tables.now}
    return tables.change(TIMESHEETS, sheet["id"], {**_pay(tables, sheet), **state})


HANDLERS: Final[dict[str, Handler]] = {
    "listRates": list_rates,
    "setHourlyRate": set_hourly_rate,
    "listTimesheets": list_timesheets,
    "submitTimesheet": submit_timesheet,
    "approveTimesheet": approve_timesheet,
}
