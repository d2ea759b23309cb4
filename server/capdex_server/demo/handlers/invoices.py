"""Invoices and the payments for them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from capdex_server.demo.answers import Handler
from capdex_server.demo.paging import in_order, page
from capdex_server.demo.problems import conflict, invalid_field
from capdex_server.demo.reading import Call
from capdex_server.demo.store import INVOICES, Row, Tables


def list_invoices(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listInvoices."""
    rows = tables.find(
        """
        SELECT * FROM invoiceRows
        WHERE (:status IS NULL OR status IN (SELECT value FROM json_each(:status)))
            AND (:unpaid IS NULL OR (status IN ('sent', 'part_paid')) = :unpaid)
            AND (:overdue IS NULL OR (status IN ('sent', 'part_paid') AND dueOn < today()) = :overdue)
            AND (:customer IS NULL OR instr(lower(customer ->> 'name'), lower(:customer)))
        """,
        call.values,
    )
    return page(in_order(rows, call["sort"]), call)


def create_invoice(tables: Tables, call: Call) -> Row:
    """Answer createInvoice."""
    return add_invoice(tables, call.body)


def add_invoice(tables: Tables, body: dict[str, Any]) -> Row:
    """Add a draft; ``body`` is the document's NewInvoice with its defaults filled in."""
    lines = [{**line, "amount": _cents(line["quantity"], line["unitPrice"])} for line in body["lines"]]
    subtotal = sum(line["amount"] for line in lines)
    tax = _cents(body["taxPercent"], subtotal, per=100)
    sums = {"subtotal": subtotal, "tax": tax, "total": subtotal + tax, "amountPaid": 0, "payments": []}
    state = {"status": "draft", "issuedOn": None, "createdAt": tables.now, "number": _number(tables)}
    return tables.add(INVOICES, {"notes": None, **body, "lines": lines, **sums, **state})


def _cents(factor: float, cents: int, *, per: int = 1) -> int:
    # Through str: a quantity of 0.1 means a tenth, not the nearest binary fraction.
    return int((Decimal(str(factor)) * cents / per).quantize(Decimal(1), ROUND_HALF_UP))


def _number(tables: Tables) -> str:
    serial = int(tables.new_id("number").removeprefix("number_")) - 1000
    return f"LS-{tables.today.year}-{serial:04}"


def get_invoice(tables: Tables, call: Call) -> Row:
    """Answer getInvoice."""
    return tables.get(INVOICES, call["invoiceId"])


def send_invoice(tables: Tables, call: Call) -> Row:
    """Answer sendInvoice."""
    invoice = tables.get(INVOICES, call["invoiceId"])
    if invoice["status"] != "draft":
        raise conflict("not-a-draft", f"The invoice is {invoice['status']}.", invoice["id"])
    if invoice["dueOn"] < str(tables.today):
        raise conflict("due-date-passed", f"The draft was due on {invoice['dueOn']}.", invoice["id"])
    return tables.change(INVOICES, invoice["id"], {"status": "sent", "issuedOn": str(tables.today)})


def record_payment(tables: Tables, call: Call) -> Row:
    """Answer recordPayment."""
    invoice = tables.get(INVOICES, call["invoiceId"])
    if invoice["status"] not in {"sent", "part_paid"}:
        raise conflict("nothing-due", f"The invoice is {invoice['status']}.", invoice["id"])
    payment = {"receivedOn": str(tables.today), "reference": None, **call.body}
    if payment["amount"] > invoice["amountDue"]:
        detail = f"Only {invoice['amountDue']} cents are due."
        raise conflict("more-than-due", detail, invoice["id"])
    if payment["receivedOn"] > str(tables.today):
        raise invalid_field("/receivedOn", "the date is in the future")
    return add_payment(tables, invoice, payment)


def add_payment(tables: Tables, invoice: Row, payment: dict[str, Any]) -> Row:
    """Book a checked payment."""
    payments = [*invoice["payments"], {"id": tables.new_id("pay"), **payment}]
    paid = invoice["amountPaid"] + payment["amount"]
    status = "paid" if paid == invoice["total"] else "part_paid"
    changes = {"payments": payments, "amountPaid": paid, "status": status}
    return tables.change(INVOICES, invoice["id"], changes)


def void_invoice(tables: Tables, call: Call) -> Row:
    """Answer voidInvoice."""
    invoice = tables.get(INVOICES, call["invoiceId"])
    if invoice["status"] == "void":
        raise conflict("already-void", "The invoice is void.", invoice["id"])
    if invoice["amountPaid"]:
        raise conflict("invoice-has-payments", "Money was received for the invoice.", invoice["id"])
    notes = "\n".join(filter(None, [invoice["notes"], f"Void: {call.body['reason']}"]))
    return tables.change(INVOICES, invoice["id"], {"status": "void", "notes": notes})


HANDLERS: Final[dict[str, Handler]] = {
    "listInvoices": list_invoices,
    "createInvoice": create_invoice,
    "getInvoice": get_invoice,
    "sendInvoice": send_invoice,
    "recordPayment": record_payment,
    "voidInvoice": void_invoice,
}
