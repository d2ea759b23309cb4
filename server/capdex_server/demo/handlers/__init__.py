"""The operations of the demo API, one file per part of the business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.handlers import documents, invoices, jobs, pay, shifts, teams, time_off, workers
from capdex_server.demo.handlers.service import get_service_status

HANDLERS: Final[Mapping[str, Handler]] = {
    "getServiceStatus": get_service_status,
    **workers.HANDLERS,
    **teams.HANDLERS,
    **shifts.HANDLERS,
    **jobs.HANDLERS,
    **time_off.HANDLERS,
    **documents.HANDLERS,
    **pay.HANDLERS,
    **invoices.HANDLERS,
}
"""operationId -> what answers it."""
