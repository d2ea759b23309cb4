"""Documents kept for workers."""

from __future__ import annotations

import re
from typing import Any, Final

from capdex_server.demo.answers import File, Handler
from capdex_server.demo.problems import Problem, conflict, invalid_field
from capdex_server.demo.reading import MAX_FILE, Call, Upload
from capdex_server.demo.store import DOCUMENTS, WORKERS, Row, Tables


def list_documents(tables: Tables, call: Call) -> dict[str, Any]:
    """Answer listDocuments."""
    tables.get(WORKERS, call["workerId"])
    rows = tables.find(
        """
        SELECT * FROM documentRows
        WHERE workerId = :workerId AND (:kind IS NULL OR kind = :kind)
            AND (:expiresBefore IS NULL OR expiresOn < :expiresBefore)
        ORDER BY uploadedAt DESC, id DESC
        """,
        call.values,
    )
    return {"items": rows}


def upload_document(tables: Tables, call: Call) -> Row:
    """Answer uploadDocument."""
    worker = tables.get(WORKERS, call["workerId"])
    body = {"expiresOn": None, **call.body}
    upload: Upload = body.pop("file")
    if len(upload.content) > MAX_FILE:
        raise Problem(413, "too-large", f"A file may have {MAX_FILE} bytes at most.")
    if not upload.content:
        raise invalid_field("/file", "the file is empty")
    stored = {
        "fileName": _header_safe(upload.file_name),
        "contentType": _media_type(upload.content_type),
        "content": upload.content,
    }
    return tables.add(DOCUMENTS, {**body, **stored, "workerId": worker["id"], "uploadedAt": tables.now})


def _header_safe(name: str) -> str:
    # It comes back in Content-Disposition: no quotes, no line ends, no folders.
    return re.sub(r"[^A-Za-z0-9._ -]", "_", re.split(r"[/\\]", name)[-1])[:120] or "document"


def _media_type(text: str) -> str:
    known = re.fullmatch(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}", text.partition(";")[0].strip().lower())
    return known[0] if known else "application/octet-stream"


def download_document(tables: Tables, call: Call) -> File:
    """Answer downloadDocument."""
    document = tables.get(DOCUMENTS, call["documentId"])
    [row] = tables.find("SELECT content FROM documents WHERE id = :documentId", call.values)
    return File(row["content"], document["contentType"], document["fileName"])


def delete_document(tables: Tables, call: Call) -> None:
    """Answer deleteDocument."""
    document = tables.get(DOCUMENTS, call["documentId"])
    worker = tables.get(WORKERS, document["workerId"])
    if document["kind"] == "contract" and worker["status"] != "left":
        raise conflict("contract-in-force", f"{worker['name']} is still employed.", worker["id"])
    tables.remove(DOCUMENTS, document["id"])


HANDLERS: Final[dict[str, Handler]] = {
    "listDocuments": list_documents,
    "uploadDocument": upload_document,
    "downloadDocument": download_document,
    "deleteDocument": delete_document,
}
