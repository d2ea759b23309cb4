"""Jobs and the people who apply for them."""

from __future__ import annotations

from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.handlers.workers import add_worker
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import APPLICATIONS, JOBS, TEAMS, Row, Tables


def list_jobs(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listJobs."""
    rows = tables.find(
        """
        SELECT * FROM jobs
        WHERE status IN (SELECT value FROM json_each(:status)) AND (:teamId IS NULL OR teamId = :teamId)
        """,
        call.values,
    )
    return page(in_order(rows, "-postedAt"), call)


def post_job(tables: Tables, call: Call) -> Row:
    """Answer postJob."""
    body = {"description": None, "payRange": None, "closesOn": None, **call.body}
    tables.known(TEAMS, body["teamId"], "/teamId")
    if body["openings"] < 1:
        raise invalid_field("/openings", "a new job needs at least one opening")
    if body["payRange"] and body["payRange"]["max"] < body["payRange"]["min"]:
        raise invalid_field("/payRange/max", "max is below min")
    return tables.add(JOBS, {**body, "status": "open", "postedAt": tables.now})


def get_job(tables: Tables, call: Call) -> Row:
    """Answer getJob."""
    return tables.get(JOBS, call["jobId"])


def list_applications(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listApplications."""
    tables.get(JOBS, call["jobId"])
    rows = tables.find(
        "SELECT * FROM applications WHERE jobId = :jobId AND (:status IS NULL OR status = :status)",
        call.values,
    )
    return page(in_order(rows, "appliedAt"), call)


def apply_for_job(tables: Tables, call: Call) -> Row:
    """Answer applyForJob."""
    job = _open_job(tables, call["jobId"])
    if job["closesOn"] and job["closesOn"] < str(tables.today):
        raise conflict("job-closed", f"Applications were taken until {job['closesOn']}.", job["id"])
    names = {"jobId": job["id"], "email": call.body["email"]}
    earlier = tables.find("SELECT id FROM applications WHERE jobId = :jobId AND email = :email", names)
    if earlier:
        raise conflict("already-applied", "There is an application from this address.", earlier[0]["id"])
    values = {"coverLetter": None, "earliestStart": None, "skills": [], **call.body, "jobId": job["id"]}
    return tables.add(APPLICATIONS, {**values, "status": "received", "appliedAt": tables.now})


def fill_job(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer fillJob."""
    job = _open_job(tables, call["jobId"])
    application = _application_for(tables, job, call.body["applicationId"])
    worker = add_worker(tables, _new_worker(job, application, call.body["startsOn"]))
    tables.change(APPLICATIONS, application["id"], {"status": "accepted"})
    openings = job["openings"] - 1
    status = "open" if openings else "filled"
    if not openings:
        tables.find(
            "UPDATE applications SET status = 'rejected' WHERE jobId = :jobId AND status = 'received'",
            {"jobId": job["id"]},
        )
    return {"job": tables.change(JOBS, job["id"], {"openings": openings, "status": status}), "worker": worker}


def _open_job(tables: Tables, job_id: str) -> Row:
    job = tables.get(JOBS, job_id)
    if job["status"] != "open":
        raise conflict("job-filled", "The job is no longer open.", job_id)
    return job


def _application_for(tables: Tables, job: Row, application_id: str) -> Row:
    tables.known(APPLICATIONS, application_id, "/applicationId")
    application = tables.get(APPLICATIONS, application_id)
    if application["jobId"] != job["id"]:
        raise invalid_field("/applicationId", "the application is for another job")
    if application["status"] != "received":
        raise conflict("application-decided", f"The application is {application['status']}.", application_id)
    return application


def _new_worker(job: Row, application: Row, starts_on: str) -> dict[str, Any]:
    return {
        "name": application["name"],
        "email": application["email"],
        "role": job["title"],
        "teamId": job["teamId"],
        "contract": job["contract"],
        "weeklyHours": {"full_time": 40, "part_time": 20, "casual": 8}[job["contract"]],
        "skills": application["skills"],
        "vacationDays": 25,
        "hiredOn": starts_on,
    }


HANDLERS: Final[dict[str, Handler]] = {
    "listJobs": list_jobs,
    "postJob": post_job,
    "getJob": get_job,
    "listApplications": list_applications,
    "applyForJob": apply_for_job,
    "fillJob": fill_job,
}
