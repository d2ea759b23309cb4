"""Made-up people, shifts and bills of a made-up caterer, around the present week."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final

from capdex_server.demo.handlers.invoices import add_invoice, add_payment
from capdex_server.demo.handlers.time_off import working_days
from capdex_server.demo.store import (
    APPLICATIONS,
    DOCUMENTS,
    INVOICES,
    JOBS,
    SHIFTS,
    TEAMS,
    TIME_OFF,
    TIMESHEETS,
    WORKERS,
    Row,
    Tables,
)

COMPANY, BAKERY, CAFE, DELIVERY, OFFICE, PASTRY = (f"team_{number}" for number in range(1001, 1007))

TEAM_ROWS: Final = (
    ("Lantern Street Catering", None, 1),
    ("Bakery", COMPANY, 3),
    ("Café", COMPANY, 2),
    ("Delivery", COMPANY, 12),
    ("Office", COMPANY, 13),
    ("Pastry", BAKERY, 6),
)
"""Name, the team above, number of the lead."""

WORKER_ROWS: Final = (
    ("Noor Abendroth", "managing director", COMPANY, "full_time", 40, "budgeting", 4200),
    ("Tadeo Lindqvist", "head of café", CAFE, "full_time", 40, "service,barista,first aid", 2350),
    ("Wilhelmina Osei", "head baker", BAKERY, "full_time", 40, "baking,first aid", 2450),
    ("Juniper Castellane", "baker", BAKERY, "full_time", 40, "baking", 1780),
    ("Anselm Okafor-Reyes", "baker", BAKERY, "part_time", 24, "baking,forklift", 1740),
    ("Priya Thornbury", "pastry cook", PASTRY, "full_time", 38, "baking,chocolate", 1890),
    ("Mateus Fairweather", "waiter", CAFE, "full_time", 36, "service", 1520),
    ("Soledad Nakagawa", "waiter", CAFE, "part_time", 20, "service,barista", 1540),
    ("Ottoline Varga", "barista", CAFE, "part_time", 24, "barista", 1580),
    ("Kwabena Holt", "driver", DELIVERY, "full_time", 40, "driving,forklift", 1650),
    ("Ines Marchetti-Lund", "driver", DELIVERY, "part_time", 20, "driving", 1620),
    ("Bartholomew Quist", "dispatcher", DELIVERY, "full_time", 40, "driving,planning", 2080),
    ("Saoirse Delacroix", "bookkeeper", OFFICE, "part_time", 28, "payroll,invoicing", 2210),
    ("Emeka Vandermeer", "waiter", CAFE, "casual", 10, "service", 1480),
    ("Liesl Abernathy", "barista", CAFE, "casual", 12, "barista,service", 1510),
)
"""Name, role, team, contract, weekly hours, skills, cents per hour; the id is ``wrk_`` + 1001 on."""

LEFT: Final = 14
"""Number of the worker who has left."""

PATTERNS: Final = (
    (4, BAKERY, "baker", "03:30", "11:30", "012345"),
    (5, BAKERY, "baker", "04:00", "10:00", "1356"),
    (3, BAKERY, "head baker", "04:00", "12:00", "01234"),
    (6, PASTRY, "pastry cook", "06:00", "14:00", "02345"),
    (7, CAFE, "waiter", "08:00", "15:00", "12456"),
    (8, CAFE, "waiter", "12:00", "17:00", "0245"),
    (9, CAFE, "barista", "07:30", "13:30", "0136"),
    (2, CAFE, "head of café", "08:00", "16:00", "01245"),
    (15, CAFE, "barista", "10:00", "16:00", "56"),
    (None, CAFE, "waiter", "11:00", "16:00", "6"),
    (10, DELIVERY, "driver", "05:00", "13:00", "01234"),
    (11, DELIVERY, "driver", "06:00", "11:00", "356"),
    (12, DELIVERY, "dispatcher", "05:00", "13:00", "01235"),
)
"""Worker, team, role, start, end, weekdays (0 is Monday); the week repeats."""

WEEKS: Final = {-1: "published", 0: "published", 1: "published", 2: "draft"}
"""Weeks that have shifts, counted from the present one, and what state they are in."""

TIME_OFF_ROWS: Final = (
    (5, "vacation", 21, 27, "pending", "Visiting family"),
    (7, "vacation", 10, 11, "pending", "Sister's wedding"),
    (9, "unpaid", 28, 29, "pending", None),
    (13, "vacation", -1, 5, "approved", None),
    (6, "vacation", 35, 41, "approved", "Hiking in the north"),
    (8, "sick", -12, -11, "approved", None),
    (10, "vacation", 14, 16, "declined", None),
)
"""Worker, kind, first and last day counted from this Monday, status, reason."""

JOB_ROWS: Final = (
    ("Night baker", BAKERY, "full_time", 1, 1700, 2000, "Bread for the morning, from three o'clock on."),
    ("Waiter for weekends", CAFE, "casual", 3, 1450, 1600, "Saturdays and Sundays in the café."),
    ("Van driver", DELIVERY, "part_time", 1, 1600, 1750, "Early tours to hotels and offices."),
)
"""Title, team, contract, openings, pay range, description."""

APPLICATION_ROWS: Final = (
    (1, "Cosmo Wetherby", "baking"),
    (1, "Rosalind Achterberg", "baking,first aid"),
    (2, "Idris Penhaligon", "service"),
    (2, "Marisol Kettering", "service,barista"),
    (3, "Fenwick Adeyemi-Stone", "driving"),
)
"""Number of the job, name, skills."""

INVOICE_ROWS: Final = (
    ("Gullwing Regatta Club", "Catering, autumn dinner", 85, 3150, -40, "paid"),
    ("Hotel Meridian Lane", "Breakfast bread, monthly", 31, 14500, -12, "sent"),
    ("Hotel Meridian Lane", "Breakfast bread, monthly", 30, 14500, 18, "sent"),
    ("Copperfield Law Office", "Lunch for meetings", 46, 1290, -5, "part_paid"),
    ("Thistle & Crane Gallery", "Opening night buffet", 120, 2450, 9, "sent"),
    ("Northgate Primary School", "Summer fair cakes", 24, 1800, 25, "draft"),
    ("Copperfield Law Office", "Lunch for meetings (written twice)", 46, 1290, -5, "void"),
)
"""Customer, line, quantity, cents each, days until due, status."""


def seed(tables: Tables) -> None:
    """Fill an empty database; leave any other alone."""
    if tables.find("SELECT 1 FROM teams LIMIT 1"):
        return
    monday = tables.today - timedelta(tables.today.weekday())
    _teams_and_workers(tables)
    # Absences first: whoever is away gets no shifts.
    _time_off(tables, monday)
    _shifts(tables, monday)
    _jobs(tables)
    _timesheets(tables, monday)
    _documents(tables)
    for row in INVOICE_ROWS:
        _invoice(tables, *row)


def _worker_id(number: int) -> str:
    return f"wrk_{1000 + number}"


def _email(name: str) -> str:
    return name.lower().replace(" ", ".") + "@lanternstreet.example"


def _teams_and_workers(tables: Tables) -> None:
    for name, parent, _ in TEAM_ROWS:
        tables.add(TEAMS, {"name": name, "parentId": parent, "createdAt": tables.now})
    for number, row in enumerate(WORKER_ROWS, 1):
        _worker(tables, number, *row)
    for index, (_, _, lead) in enumerate(TEAM_ROWS):
        tables.change(TEAMS, f"team_{1001 + index}", {"leadId": _worker_id(lead)})


def _worker(
    tables: Tables,
    number: int,
    name: str,
    role: str,
    team: str,
    contract: str,
    hours: int,
    skills: str,
    rate: int,
) -> None:
    hired_on = str(tables.today - timedelta(1500 - 73 * number))
    values: dict[str, Any] = {
        "name": name,
        "email": _email(name),
        "phone": f"+00 555 01{number:02}",
        "role": role,
        "teamId": team,
        "managerId": None if number == 1 else _worker_id(1),
        "contract": contract,
        "weeklyHours": hours,
        "skills": skills.split(","),
        "vacationDays": 25 if contract == "full_time" else 20,
        "hiredOn": hired_on,
        "lastDay": str(tables.today - timedelta(30)) if number == LEFT else None,
        "createdAt": tables.now,
    }
    worker = tables.add(WORKERS, values)
    pay = {"effectiveFrom": hired_on, "hourlyRate": rate, "currency": "EUR"}
    tables.insert("rates", {"workerId": worker["id"], **pay})


def _time_off(tables: Tables, monday: date) -> None:
    for worker, kind, first, last, status, reason in TIME_OFF_ROWS:
        starts_on = monday + timedelta(first)
        # A request stays within one year, whenever the demo is started.
        ends_on = min(monday + timedelta(last), date(starts_on.year, 12, 31))
        values: dict[str, Any] = {
            "workerId": _worker_id(worker),
            "kind": kind,
            "startsOn": str(starts_on),
            "endsOn": str(ends_on),
            "days": working_days(str(starts_on), str(ends_on)),
            "reason": reason,
            "status": status,
            "decisionNote": "Too few drivers that week." if status == "declined" else None,
            "decidedAt": None if status == "pending" else tables.now,
            "createdAt": tables.now,
        }
        tables.add(TIME_OFF, values)


def _shifts(tables: Tables, monday: date) -> None:
    for week, status in WEEKS.items():
        for weekday in range(7):
            day = str(monday + timedelta(7 * week + weekday))
            for number, team, role, start, end, weekdays in PATTERNS:
                if str(weekday) in weekdays and not _is_away(tables, number, day):
                    values = {"teamId": team, "role": role, "status": status, "createdAt": tables.now}
                    times = {"startsAt": f"{day}T{start}:00Z", "endsAt": f"{day}T{end}:00Z"}
                    worker = number and _worker_id(number)
                    tables.add(SHIFTS, {**values, **times, "breakMinutes": 30, "workerId": worker})


def _is_away(tables: Tables, number: int | None, day: str) -> bool:
    rows = tables.find(
        """
        SELECT 1 FROM timeOff
        WHERE workerId = :worker AND status = 'approved' AND :day BETWEEN startsOn AND endsOn
        """,
        {"worker": number and _worker_id(number), "day": day},
    )
    return bool(rows)


def _jobs(tables: Tables) -> None:
    for title, team, contract, openings, low, high, description in JOB_ROWS:
        values = {"title": title, "teamId": team, "contract": contract, "openings": openings}
        pay = {"payRange": {"min": low, "max": high, "currency": "EUR"}, "description": description}
        state = {"closesOn": str(tables.today + timedelta(45)), "status": "open", "postedAt": tables.now}
        tables.add(JOBS, {**values, **pay, **state})
    for job, name, skills in APPLICATION_ROWS:
        email = name.lower().replace(" ", ".") + "@post.example"
        values = {"jobId": f"job_{1000 + job}", "name": name, "email": email, "skills": skills.split(",")}
        tables.add(APPLICATIONS, {**values, "status": "received", "appliedAt": tables.now})


def _timesheets(tables: Tables, monday: date) -> None:
    for number, hours in ((3, 7.5), (4, 7.5), (7, 6.5), (10, 7.5), (12, 7.5)):
        for week, status in ((-2, "approved"), (-1, "submitted")):
            start = monday + timedelta(7 * week)
            entries = [{"date": str(start + timedelta(day)), "hours": hours} for day in range(4)]
            values: dict[str, Any] = {
                "workerId": _worker_id(number),
                "weekStart": str(start),
                "entries": entries,
                "totalHours": hours * 4,
                "grossPay": round(hours * 4 * WORKER_ROWS[number - 1][6]),
                "currency": "EUR",
                "status": status,
                "submittedAt": tables.now,
                "approvedAt": tables.now if status == "approved" else None,
            }
            tables.add(TIMESHEETS, values)


def _documents(tables: Tables) -> None:
    rows = (
        (3, "contract", "Employment contract", None),
        (3, "certificate", "Food hygiene certificate", 20),
        (5, "certificate", "Forklift licence", 400),
        (10, "certificate", "Driving licence", 60),
    )
    for number, kind, title, expires_in in rows:
        text = f"{title}\n{WORKER_ROWS[number - 1][0]}\nA made-up document.\n"
        values: dict[str, Any] = {
            "workerId": _worker_id(number),
            "kind": kind,
            "title": title,
            "fileName": title.lower().replace(" ", "-") + ".txt",
            "contentType": "text/plain",
            "expiresOn": expires_in and str(tables.today + timedelta(expires_in)),
            "uploadedAt": tables.now,
            "content": text.encode(),
        }
        tables.add(DOCUMENTS, values)


def _invoice(
    tables: Tables, name: str, line: str, quantity: int, price: int, due_in: int, status: str
) -> None:
    customer = {"name": name, "email": "accounts@" + name.split()[0].lower() + ".example"}
    invoice = add_invoice(
        tables,
        {
            "customer": customer,
            "currency": "EUR",
            "dueOn": str(tables.today + timedelta(due_in)),
            "taxPercent": 20,
            "lines": [{"description": line, "quantity": quantity, "unitPrice": price}],
        },
    )
    if status == "draft":
        return
    issued_on = tables.today + timedelta(min(due_in - 30, 0))
    sent = tables.change(INVOICES, invoice["id"], {"status": "sent", "issuedOn": str(issued_on)})
    if status == "void":
        tables.change(INVOICES, invoice["id"], {"status": "void"})
    elif status != "sent":
        _pay(tables, sent, in_full=status == "paid")


def _pay(tables: Tables, invoice: Row, *, in_full: bool) -> None:
    amount = invoice["total"] if in_full else invoice["total"] // 2
    received = {"receivedOn": str(tables.today - timedelta(3)), "method": "bank_transfer", "reference": None}
    add_payment(tables, invoice, {"amount": amount, **received})
