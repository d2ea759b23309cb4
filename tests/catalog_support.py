"""Catalogs from documents written in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capdex_engine.catalog import Catalog, Source, SourceSettings, build_catalog
from capdex_engine.documents import folder_retrieve
from capdex_engine.errors import DocumentError
from capdex_engine.operation import Operation


def source(
    document: Any, name: str = "api", *, settings: SourceSettings | None = None, url: str | None = None
) -> Source:
    """A source whose document is a Python value."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Source(name, f"/documents/{name}.json", data, url, settings or SourceSettings())


def document(paths: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """An OpenAPI document with one server."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": paths,
        **fields,
    }


def catalog_of(*documents: Any, files: Mapping[str, str] | None = None, **settings: Any) -> Catalog:
    """A catalog of documents named ``api``, ``api2``, ...; ``files`` are the ones they may refer to."""
    chosen = SourceSettings(**settings)
    sources = [
        source(each, f"api{index + 1 if index else ''}", settings=chosen)
        for index, each in enumerate(documents)
    ]
    return build_catalog(sources, retrieve=None if files is None else lambda _source: reader_of(files))


def reader_of(files: Mapping[str, str]) -> Any:
    """A retrieve callable over texts by absolute path."""

    def retrieve(uri: str) -> bytes:
        if uri not in files:
            raise DocumentError("there is no such file.", location=uri)
        return files[uri].encode()

    return retrieve


def only(catalog: Catalog) -> Operation:
    """The one operation of a catalog, kept out or not."""
    (operation,) = (*catalog.operations, *catalog.kept_out)
    return operation


def load_file(path: Path, **fields: Any) -> Catalog:
    """A catalog of one file and the files in its folder."""
    return build_catalog(
        [Source.from_file(path, **fields)], retrieve=lambda _source: folder_retrieve(path.parent)
    )


def operation_with(*parameters: Any, path: str = "/x", **fields: Any) -> dict[str, Any]:
    """A document with one GET operation that has these parameters."""
    return document({path: {"get": {"operationId": "x", "parameters": list(parameters), **fields}}})


def body_of(content: Any, **fields: Any) -> dict[str, Any]:
    """A document with one POST operation that has this body."""
    body = {"content": content, **fields.pop("body", {})}
    return document({"/x": {"post": {"operationId": "x", "requestBody": body}}}, **fields)
