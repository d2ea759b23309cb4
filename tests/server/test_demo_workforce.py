"""The demo API against its own document: every answer in here is checked by the document's schemas."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from starlette.routing import Route
from starlette.testclient import TestClient

from capdex_server.demo import create_demo_app, demo_document

NOW = datetime(2026, 6, 3, 9, 30, tzinfo=UTC)  # a Wednesday
SATURDAY = "2026-06-06"
KEY = {"X-Workforce-Key": "test-key"}
DOCUMENT = yaml.safe_load(demo_document())
REGISTRY = Registry().with_resource(
    "urn:doc", Resource.from_contents(DOCUMENT, default_specification=DRAFT202012)
)
OPERATIONS = {
    operation["operationId"]: (method, path)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
}


def escape(text: str) -> str:
    # A fragment, so what a URI does not allow is percent-encoded.
    return text.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")


def check(operation_id: str, response: Any) -> None:
    """Hold an answer to the document: its status, media type and schema."""
    method, path = OPERATIONS[operation_id]
    responses = DOCUMENT["paths"][path][method]["responses"]
    status = str(response.status_code)
    assert status in responses, f"{operation_id} answers an undocumented {status}: {response.text}"
    pointer = f"#/paths/{escape(path)}/{method}/responses/{status}"
    if reference := responses[status].get("$ref"):
        pointer = reference
    answer = DOCUMENT
    for key in pointer.replace("%7B", "{").replace("%7D", "}")[2:].split("/"):
        answer = answer[key.replace("~1", "/").replace("~0", "~")]
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if "content" not in answer:
        assert response.content == b""
    elif "*/*" not in answer["content"]:
        assert media_type in answer["content"]
        schema = {"$ref": f"urn:doc{pointer}/content/{escape(media_type)}/schema"}
        Draft202012Validator(schema, registry=REGISTRY, format_checker=FormatChecker()).validate(
            response.json()
        )
    assert ("Location" in answer.get("headers", {})) <= ("location" in response.headers)


class Api:
    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.called: set[str] = set()

    def send(self, operation_id: str, /, status: int = 200, **options: Any) -> Any:
        method, template = OPERATIONS[operation_id]
        names = [part[1:-1] for part in template.split("/") if part.startswith("{")]
        path = template.format(**{name: options.pop(name) for name in names})
        response = self.client.request(method.upper(), path, **{"headers": KEY, **options})
        check(operation_id, response)
        assert response.status_code == status, response.text
        if status < 400:
            self.called.add(operation_id)
        return response

    def __call__(self, operation_id: str, /, status: int = 200, **options: Any) -> Any:
        response = self.send(operation_id, status, **options)
        return response.json() if response.content else None

    def refused(self, operation_id: str, status: int, code: str, **options: Any) -> Any:
        problem = self(operation_id, status, **options)
        assert problem["code"] == code, problem
        return problem


@pytest.fixture
def api() -> Iterator[Api]:
    with TestClient(create_demo_app(api_key="test-key", now=lambda: NOW)) as client:
        yield Api(client)


def shift(worker: str | None, day: str, start: str, end: str, team: str = "team_1003") -> dict[str, Any]:
    times = {"startsAt": f"{day}T{start}:00Z", "endsAt": f"{day}T{end}:00Z"}
    return {"teamId": team, "workerId": worker, "role": "waiter", **times}


def test_app_and_document_have_the_same_operations() -> None:
    app = create_demo_app(api_key="k")
    routes = {
        (method.lower(), route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods - {"HEAD"}
    }
    assert routes == set(OPERATIONS.values())


def test_every_operation_has_a_summary_a_description_and_a_known_tag() -> None:
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for method, path in OPERATIONS.values():
        operation = DOCUMENT["paths"][path][method]
        assert operation["summary"]
        assert operation["description"]
        assert set(operation["tags"]) <= tags


def test_every_operation_works_once_as_documented(api: Api) -> None:
    api("getServiceStatus", headers={})
    for name in ("listWorkers", "listEmployees", "listTeams", "getOrgChart", "listShifts", "listJobs"):
        api(name)
    for name in ("listTimeOffRequests", "listTimesheets", "listInvoices"):
        api(name)
    for name in ("getWorker", "listDocuments", "listRates", "getTimeOffBalance"):
        api(name, workerId="wrk_1004")
    api("getTeam", teamId="team_1002")
    api("getShift", shiftId="shf_1001")
    api("getJob", jobId="job_1001")
    api("listApplications", jobId="job_1001")
    api("getTimeOffRequest", requestId="off_1001")
    api("getInvoice", invoiceId="inv_1001")
    api.send("downloadDocument", documentId="doc_1001")
    api("getDailyRota", date=SATURDAY)
    api("publishRota", json={"teamId": "team_1002", "from": "2026-06-01", "to": "2026-06-30"})
    api("getWorkerAvailability", workerId="wrk_1004", params={"from": SATURDAY, "to": "2026-06-07"})
    worker = api(
        "hireWorker", 201, json={"name": "A", "email": "a@b.example", "role": "x", "hiredOn": SATURDAY}
    )
    api("updateWorker", workerId=worker["id"], json={"phone": "1"})
    offboard = {"lastDay": "2026-07-01", "reason": "resigned"}
    api("offboardWorker", workerId=worker["id"], json=offboard)
    team = api("createTeam", 201, json={"name": "Night"})
    api("updateTeam", teamId=team["id"], json={"parentId": "team_1002"})
    one = api("scheduleShift", 201, json=shift("wrk_1009", "2026-06-05", "16:00", "18:00"))
    two = api("scheduleShift", 201, json=shift("wrk_1015", "2026-06-04", "16:00", "18:00"))
    api("rescheduleShift", shiftId=one["id"], json={"notes": "bring keys"})
    api("swapShifts", shiftId=one["id"], json={"withShiftId": two["id"]})
    api("assignShift", shiftId=one["id"], json={"workerId": None})
    api("cancelShift", 204, shiftId=one["id"])
    job = {"title": "Cook", "teamId": "team_1006", "contract": "full_time", "openings": 1}
    job_id = api("postJob", 201, json=job)["id"]
    application = api("applyForJob", 201, jobId=job_id, data={"name": "B", "email": "b@b.example"})
    api("fillJob", jobId=job_id, json={"applicationId": application["id"], "startsOn": SATURDAY})
    off = {"workerId": "wrk_1004", "kind": "vacation", "startsOn": "2026-08-03", "endsOn": "2026-08-04"}
    request_id = api("requestTimeOff", 201, json=off)["id"]
    api("approveTimeOff", requestId=request_id)
    api("withdrawTimeOff", 204, requestId=request_id)
    api("declineTimeOff", requestId="off_1001", json={"reason": "too busy"})
    files = {"file": ("a.txt", b"hello", "text/plain")}
    form = {"kind": "other", "title": "Note"}
    document = api("uploadDocument", 201, workerId="wrk_1004", files=files, data=form)
    api("deleteDocument", 204, documentId=document["id"])
    api("setHourlyRate", workerId="wrk_1004", effectiveFrom="2026-07-01", json={"hourlyRate": 1900})
    entries = [{"date": "2026-05-04", "hours": 7.5}]
    sheet = {"workerId": "wrk_1004", "weekStart": "2026-05-04", "entries": entries}
    api("approveTimesheet", timesheetId=api("submitTimesheet", 201, json=sheet)["id"])
    lines = [{"description": "Cake", "quantity": 2, "unitPrice": 500}]
    bill = {"customer": {"name": "C", "email": "c@c.example"}, "dueOn": "2026-07-01", "lines": lines}
    invoice_id = api("createInvoice", 201, json=bill)["id"]
    api("sendInvoice", invoiceId=invoice_id)
    api("recordPayment", 201, invoiceId=invoice_id, json={"amount": 100})
    api("voidInvoice", invoiceId="inv_1006", json={"reason": "not wanted"})
    assert api.called == set(OPERATIONS)


@pytest.mark.parametrize(
    "name", ["hireWorker", "createTeam", "scheduleShift", "postJob", "requestTimeOff", "createInvoice"]
)
def test_the_example_of_a_creating_operation_works(api: Api, name: str) -> None:
    method, path = OPERATIONS[name]
    content = DOCUMENT["paths"][path][method]["requestBody"]["content"]["application/json"]
    created = api.send(name, 201, json=content["example"])
    assert api.client.get(created.headers["location"], headers=KEY).json() == created.json()


def test_a_wrong_key_is_refused_and_the_status_needs_none(api: Api) -> None:
    api.refused("listWorkers", 401, "unauthorized", headers={"X-Workforce-Key": "other"})
    api.refused("listWorkers", 401, "unauthorized", headers={})
    assert api("getServiceStatus", headers={})["status"] == "ok"


def test_unknown_paths_and_methods_are_problems_too(api: Api) -> None:
    missing = api.client.get("/nowhere")
    assert (missing.status_code, missing.json()["code"]) == (404, "no-such-path")
    wrong = api.client.put("/workers")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method-not-allowed")


def test_saturdays_rota_says_who_works_who_is_away_and_what_is_open(api: Api) -> None:
    rota = api("getDailyRota", date=SATURDAY)
    working = {row["workerName"] for team in rota["teams"] for row in team["shifts"]}
    assert rota["weekday"] == "Saturday"
    assert {"Juniper Castellane", "Mateus Fairweather"} <= working
    assert rota["headcount"] == len(working)
    assert [row["name"] for row in rota["away"]] == ["Saoirse Delacroix"]
    assert api("getDailyRota", date="2026-06-07")["openShifts"]


def test_drafts_are_on_the_rota_only_once_published(api: Api) -> None:
    day = "2026-06-20"
    assert api("getDailyRota", date=day)["headcount"] == 0
    assert api("getDailyRota", date=day, params={"includeDrafts": "true"})["headcount"] > 0
    week = {"teamId": "team_1003", "from": "2026-06-15", "to": "2026-06-21"}
    api.refused("publishRota", 409, "open-shifts", json=week)
    assert api("publishRota", json={**week, "allowOpenShifts": True})["publishedShiftIds"]
    assert api("getDailyRota", date=day)["headcount"] > 0


def test_an_overlapping_shift_is_refused_and_a_following_one_is_not(api: Api) -> None:
    first = api("scheduleShift", 201, json=shift("wrk_1009", "2026-06-05", "10:00", "14:00"))
    problem = api.refused(
        "scheduleShift", 409, "shift-overlap", json=shift("wrk_1009", "2026-06-05", "13:00", "15:00")
    )
    assert problem["conflictsWith"] == [first["id"]]
    api("scheduleShift", 201, json=shift("wrk_1009", "2026-06-05", "14:00", "15:00"))


def test_moments_with_an_offset_are_compared_in_utc(api: Api) -> None:
    body = shift("wrk_1009", "2026-06-05", "10:00", "14:00")
    body.update(startsAt="2026-06-05T12:00:00+02:00", endsAt="2026-06-05T16:00:00+02:00")
    assert api("scheduleShift", 201, json=body)["startsAt"] == "2026-06-05T10:00:00Z"
    body.update(startsAt="2026-06-05T12:00:00")
    problem = api.refused("scheduleShift", 422, "invalid-input", json=body)
    assert [issue["pointer"] for issue in problem["issues"]] == ["/startsAt"]


def test_nobody_is_scheduled_while_away_or_after_leaving(api: Api) -> None:
    api.refused("scheduleShift", 409, "on-time-off", json=shift("wrk_1013", "2026-06-05", "09:00", "12:00"))
    api.refused("scheduleShift", 409, "not-employed", json=shift("wrk_1014", "2026-06-05", "09:00", "12:00"))


def test_swapping_exchanges_the_workers_and_checks_both(api: Api) -> None:
    one = api("scheduleShift", 201, json=shift("wrk_1009", "2026-06-05", "16:00", "18:00"))
    two = api("scheduleShift", 201, json=shift("wrk_1015", "2026-06-05", "17:00", "19:00"))
    swapped = api("swapShifts", shiftId=one["id"], json={"withShiftId": two["id"]})["shifts"]
    assert [row["workerId"] for row in swapped] == ["wrk_1015", "wrk_1009"]
    api("scheduleShift", 201, json=shift("wrk_1015", "2026-06-05", "18:30", "20:00"))
    api.refused("swapShifts", 409, "shift-overlap", shiftId=one["id"], json={"withShiftId": two["id"]})
    assert api("getShift", shiftId=one["id"])["workerId"] == "wrk_1015"


def test_a_worked_shift_cannot_be_changed(api: Api) -> None:
    past = api("listShifts", params={"status": "completed", "limit": 1})["items"][0]
    api.refused("cancelShift", 409, "shift-completed", shiftId=past["id"])
    api.refused("assignShift", 409, "shift-completed", shiftId=past["id"], json={"workerId": None})


def test_approving_vacation_books_the_days_and_withdrawing_returns_them(api: Api) -> None:
    before = api("getTimeOffBalance", workerId="wrk_1005")
    [request] = api("listTimeOffRequests", params={"status": "pending", "workerId": "wrk_1005"})["items"]
    approved = api("approveTimeOff", requestId=request["id"], json={"note": "Enjoy", "releaseShifts": True})
    after = api("getTimeOffBalance", workerId="wrk_1005")
    assert approved["request"]["decisionNote"] == "Enjoy"
    assert after["left"] == before["left"] - request["days"]
    assert after["pending"] == before["pending"] - request["days"]
    api("withdrawTimeOff", 204, requestId=request["id"])
    assert api("getTimeOffBalance", workerId="wrk_1005")["left"] == before["left"]


def test_shifts_stand_in_the_way_of_time_off_until_released(api: Api) -> None:
    problem = api.refused("approveTimeOff", 409, "shifts-during-time-off", requestId="off_1002")
    released = api("approveTimeOff", requestId="off_1002", json={"releaseShifts": True})["releasedShiftIds"]
    assert released == problem["conflictsWith"]
    assert api("getShift", shiftId=released[0])["workerId"] is None
    api.refused("approveTimeOff", 409, "already-decided", requestId="off_1002")


def test_time_off_is_refused_beyond_the_balance_or_across_years(api: Api) -> None:
    body = {"workerId": "wrk_1004", "kind": "vacation", "startsOn": "2026-08-03", "endsOn": "2026-09-30"}
    api.refused("requestTimeOff", 409, "insufficient-balance", json=body)
    api.refused("requestTimeOff", 422, "invalid-input", json={**body, "endsOn": "2027-01-03"})
    api("requestTimeOff", 201, json={**body, "endsOn": "2026-08-07"})
    api.refused("requestTimeOff", 409, "time-off-overlap", json={**body, "endsOn": "2026-08-04"})


def test_unpaid_and_overdue_invoices_are_found(api: Api) -> None:
    unpaid = api("listInvoices", params={"unpaid": "true"})["items"]
    overdue = api("listInvoices", params={"overdue": "true"})["items"]
    assert {row["status"] for row in unpaid} == {"sent", "part_paid"}
    assert all(row["amountDue"] > 0 for row in unpaid)
    assert {row["id"] for row in overdue} < {row["id"] for row in unpaid}


def test_a_paid_invoice_cannot_be_voided_nor_overpaid(api: Api) -> None:
    [invoice] = api("listInvoices", params={"customer": "thistle"})["items"]
    too_much = {"amount": invoice["amountDue"] + 1}
    api.refused("recordPayment", 409, "more-than-due", invoiceId=invoice["id"], json=too_much)
    paid = api("recordPayment", 201, invoiceId=invoice["id"], json={"amount": invoice["amountDue"]})
    assert (paid["status"], paid["amountDue"]) == ("paid", 0)
    api.refused("voidInvoice", 409, "invoice-has-payments", invoiceId=invoice["id"], json={"reason": "x"})


def test_invoice_totals_are_rounded_half_up_to_the_cent(api: Api) -> None:
    lines = [{"description": "Flour", "quantity": 0.5, "unitPrice": 5}]
    bill = {"customer": {"name": "C", "email": "c@c.example"}, "dueOn": "2026-07-01", "lines": lines}
    made = api("createInvoice", 201, json={**bill, "taxPercent": 50})
    assert (made["subtotal"], made["tax"], made["total"]) == (3, 2, 5)


def test_a_key_makes_repeating_harmless_and_fits_one_request_only(api: Api) -> None:
    body = {"name": "A", "email": "a@b.example", "role": "x", "hiredOn": SATURDAY}
    headers = {**KEY, "Idempotency-Key": "once"}
    first = api.send("hireWorker", 201, json=body, headers=headers)
    again = api.send("hireWorker", 201, json=body, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = {**body, "email": "c@b.example"}
    api.refused("hireWorker", 409, "idempotency-key-reused", json=other, headers=headers)
    api.refused("hireWorker", 409, "email-in-use", json=body)


def test_every_fault_of_the_input_is_listed(api: Api) -> None:
    query = {"limit": "0", "sort": "age", "nme": "x", "status": "active,gone"}
    issues = api.refused("listWorkers", 422, "invalid-input", params=query)["issues"]
    assert {issue["pointer"] for issue in issues} == {"/limit", "/sort", "/nme", "/status/1"}
    body = {"name": "", "email": "nobody", "role": "x", "hiredOn": "20260606", "id": "wrk_1"}
    issues = api.refused("hireWorker", 422, "invalid-input", json=body)["issues"]
    assert {issue["pointer"] for issue in issues} == {"/name", "/email", "/hiredOn", ""}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"name": NaN}', b"\xff", b'{"name": "\\ud800"}'])
def test_a_body_that_is_no_object_of_json_is_refused(api: Api, content: bytes) -> None:
    headers = {**KEY, "Content-Type": "application/json"}
    api.refused("createTeam", 422, "invalid-input", content=content, headers=headers)


def test_null_clears_a_value_and_what_is_not_sent_stays(api: Api) -> None:
    before = api("getWorker", workerId="wrk_1004")
    after = api("updateWorker", workerId="wrk_1004", json={"phone": None, "skills": ["baking", "tea"]})
    assert after == {**before, "phone": None, "skills": ["baking", "tea"]}
    api.refused("updateWorker", 422, "invalid-input", workerId="wrk_1004", json={"teamId": "team_1"})
    api.refused(
        "updateWorker",
        409,
        "email-in-use",
        workerId="wrk_1004",
        json={"email": "Noor.Abendroth@lanternstreet.example"},
    )


def test_pages_join_to_the_whole_list(api: Api) -> None:
    whole = api("listWorkers", params={"limit": 100})
    names, cursor = [], None
    while True:
        part = api("listWorkers", params={"limit": 4, **({"cursor": cursor} if cursor else {})})
        names += [row["name"] for row in part["items"]]
        if (cursor := part["nextCursor"]) is None:
            break
    assert names == [row["name"] for row in whole["items"]] == sorted(names)
    api.refused("listWorkers", 422, "invalid-input", params={"limit": "9" * 5000})
    for cursor in ("x", "ü", "b3g"):
        api.refused("listWorkers", 422, "invalid-input", params={"cursor": cursor})


def test_filters_narrow_the_workers(api: Api) -> None:
    both = api("listWorkers", params={"skills": "baking,forklift"})["items"]
    assert [row["name"] for row in both] == ["Anselm Okafor-Reyes"]
    away = api("listWorkers", params={"status": "on_leave,left", "sort": "-name"})["items"]
    assert [row["name"] for row in away] == ["Saoirse Delacroix", "Emeka Vandermeer"]


def test_offboarding_releases_later_shifts_and_withdraws_requests(api: Api) -> None:
    body = {"lastDay": "2026-06-05", "reason": "resigned"}
    released = api("offboardWorker", workerId="wrk_1007", json=body)["releasedShiftIds"]
    assert released
    assert all(api("getShift", shiftId=name)["workerId"] is None for name in released)
    assert api("getTimeOffRequest", requestId="off_1002")["status"] == "withdrawn"
    api.refused("offboardWorker", 409, "already-offboarded", workerId="wrk_1007", json=body)


def test_the_org_chart_nests_and_adds_up(api: Api) -> None:
    [root] = api("getOrgChart")["roots"]
    bakery = root["children"][0]
    assert (root["lead"]["name"], bakery["name"]) == ("Noor Abendroth", "Bakery")
    assert [child["name"] for child in bakery["children"]] == ["Pastry"]
    assert root["headcount"] == 14
    [cut] = api("getOrgChart", params={"depth": 0})["roots"]
    assert (cut["children"], cut["headcount"]) == ([], 14)
    api.refused("updateTeam", 409, "team-below-itself", teamId="team_1002", json={"parentId": "team_1006"})


def test_a_document_comes_back_as_it_was_uploaded(api: Api) -> None:
    content = bytes(range(256))
    files = {"file": ('../a"b.pdf', content, "application/pdf")}
    form = {"kind": "contract", "title": "Contract", "expiresOn": "2027-01-01"}
    made = api("uploadDocument", 201, workerId="wrk_1004", files=files, data=form)
    assert (made["bytes"], made["contentType"]) == (256, "application/pdf")
    answer = api.send("downloadDocument", documentId=made["id"])
    assert answer.content == content
    assert answer.headers["content-type"] == "application/pdf"
    api.refused("deleteDocument", 409, "contract-in-force", documentId=made["id"])


@pytest.mark.parametrize(
    ("files", "form", "status"),
    [
        ({"file": ("a", b"", "text/plain")}, {"kind": "other", "title": "t"}, 422),
        ({"file": ("a", b"x", "text/plain")}, {"kind": "novel", "title": "t"}, 422),
        ({"file": ("a", b"x" * 4_300_000, "text/plain")}, {"kind": "other", "title": "t"}, 413),
        ({"other": ("a", b"x", "text/plain")}, {"kind": "other", "title": "t"}, 422),
    ],
)
def test_a_bad_upload_is_refused(api: Api, files: Any, form: Any, status: int) -> None:
    api("uploadDocument", status, workerId="wrk_1004", files=files, data=form)
    assert api("listDocuments", workerId="wrk_1004")["items"] == []


def test_a_form_with_a_repeated_field_is_an_application_with_several_skills(api: Api) -> None:
    form = {"name": "B", "email": "b@b.example", "skills": ["baking", "tea"]}
    assert api("applyForJob", 201, jobId="job_1001", data=form)["skills"] == ["baking", "tea"]
    api.refused("applyForJob", 409, "already-applied", jobId="job_1001", data=form)


def test_filling_the_last_opening_hires_and_rejects_the_rest(api: Api) -> None:
    body = {"applicationId": "app_1002", "startsOn": "2026-07-01"}
    filled = api("fillJob", jobId="job_1001", json=body)
    assert (filled["job"]["status"], filled["job"]["openings"]) == ("filled", 0)
    assert filled["worker"]["name"] == "Rosalind Achterberg"
    states = {row["id"]: row["status"] for row in api("listApplications", jobId="job_1001")["items"]}
    assert states == {"app_1001": "rejected", "app_1002": "accepted"}
    api.refused("fillJob", 409, "job-filled", jobId="job_1001", json=body)


def test_a_raise_changes_pay_from_its_day_and_spares_approved_weeks(api: Api) -> None:
    api("setHourlyRate", workerId="wrk_1006", effectiveFrom="2026-05-06", json={"hourlyRate": 2000})
    entries = [{"date": "2026-05-05", "hours": 2}, {"date": "2026-05-06", "hours": 2}]
    sheet = {"workerId": "wrk_1006", "weekStart": "2026-05-04", "entries": entries}
    made = api("submitTimesheet", 201, json=sheet)
    assert made["grossPay"] == 2 * 1890 + 2 * 2000
    api("approveTimesheet", timesheetId=made["id"])
    raise_ = {"workerId": "wrk_1006", "json": {"hourlyRate": 2100}}
    api.refused("setHourlyRate", 409, "week-approved", effectiveFrom="2026-05-10", **raise_)
    api("setHourlyRate", effectiveFrom="2026-05-11", **raise_)
    api.refused("submitTimesheet", 409, "timesheet-exists", json=sheet)
    api.refused("submitTimesheet", 422, "invalid-input", json={**sheet, "weekStart": "2026-05-05"})


def test_text_in_filters_and_ids_is_never_sql(api: Api) -> None:
    hostile = "x' OR '1'='1"
    assert api("listWorkers", params={"name": hostile})["items"] == []
    api.refused("getWorker", 404, "not-found", workerId="x'%20OR%20'1'='1")
    api(
        "hireWorker",
        201,
        json={"name": hostile, "email": "a@b.example", "role": "'; DROP TABLE workers", "hiredOn": SATURDAY},
    )
    assert api("listWorkers", params={"name": hostile})["items"][0]["name"] == hostile


def test_a_file_keeps_its_data_between_runs(tmp_path: Any) -> None:
    path = tmp_path / "demo.sqlite"
    for status in (201, 409):
        with TestClient(create_demo_app(path, api_key="test-key", now=lambda: NOW)) as client:
            Api(client)("createTeam", status, json={"name": "Night"})


@pytest.mark.parametrize("day", [datetime(2026, 12, 31, tzinfo=UTC), datetime(2028, 2, 29, 23, tzinfo=UTC)])
def test_the_made_up_data_is_sound_whenever_the_demo_starts(day: datetime) -> None:
    with TestClient(create_demo_app(api_key="test-key", now=lambda: day)) as client:
        for name in ("listTimeOffRequests", "listInvoices", "listTimesheets", "listShifts"):
            assert Api(client)(name)["items"]
