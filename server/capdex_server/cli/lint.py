"""An optional second opinion on a document: openapi-spec-validator, which capdex itself never needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final

from capdex_engine.catalog import Remark, Source
from capdex_engine.documents import parse_document
from capdex_engine.errors import ConfigurationError, DocumentError
from capdex_server.config import is_url

MAX_REMARKS: Final = 100
"""Problems that are shown of one document."""
MAX_MESSAGE: Final = 300
"""Characters of one; messages quote the document."""
Retrieve = Callable[[str], bytes]
PACKAGE: Final = "openapi-spec-validator>=0.9,<0.10"
"""Named by itself: an extra of capdex would bring all of capdex, torch too, where a server runs without."""


def require_linter() -> None:
    """Refuse to begin without the package.

    Raises:
        ConfigurationError: It is not installed; the message is the line to type.
    """
    if find_spec("openapi_spec_validator") is None:
        raise ConfigurationError(
            f"--lint needs openapi-spec-validator, which is not installed. Run: pip install '{PACKAGE}'"
        )


def lint(source: Source, retrieve: Retrieve) -> list[Remark]:
    """Return what openapi-spec-validator says of a document; at most ``MAX_REMARKS`` remarks.

    Args:
        source: The document, with its bytes.
        retrieve: Reads the files that it refers to; nothing else is read.
    """
    found: list[Remark] = []
    try:
        found += islice(_problems(source, retrieve), MAX_REMARKS)
        if len(found) == MAX_REMARKS:
            found.append(Remark(f"No more than {MAX_REMARKS} problems are shown."))
    except DocumentError as error:
        found.append(Remark(_clipped(error.message), str(error.details.get("pointer", ""))))
    except Exception as error:  # a stranger's code on any document; its crash is no news about ours
        found.append(Remark(_clipped(f"The linter could not finish: {type(error).__name__}: {error}")))
    return found


def _problems(source: Source, retrieve: Retrieve) -> Iterator[Remark]:
    from jsonschema_path import SchemaPath
    from openapi_spec_validator.shortcuts import get_validator_cls
    from openapi_spec_validator.validation.exceptions import ValidatorDetectError

    tree = parse_document(source.data, location=source.location)
    try:
        validator = get_validator_cls(tree)
    except ValidatorDetectError:
        yield Remark("The linter does not know this version of OpenAPI.")
        return
    base = source.base if is_url(source.base) else Path(source.base).as_uri()
    path = SchemaPath.from_dict(tree, base_uri=base, handlers=_Handlers(retrieve))
    for error in validator(path).iter_errors():
        # Of alternatives that all fail, the one that comes furthest is the one that was meant.
        nearest = max(error.context or [error], key=lambda one: len(one.absolute_path))
        yield Remark(_clipped(nearest.message), "".join(f"/{_token(part)}" for part in nearest.absolute_path))


class _Handlers(dict[str, Callable[[str], Any]]):
    """Answers for every scheme: what is not answered for, the library would fetch by itself."""

    def __init__(self, retrieve: Retrieve) -> None:
        super().__init__()
        self._retrieve = retrieve

    def __contains__(self, scheme: object) -> bool:
        return True

    def __getitem__(self, scheme: str) -> Callable[[str], Mapping[str, Any]]:
        return self._read

    def _read(self, uri: str) -> Mapping[str, Any]:
        return parse_document(self._retrieve(uri), location=uri)


def _token(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _clipped(text: str) -> str:
    """Return the beginning and the end of a long message: what it quotes stands between."""
    line = " ".join(text.split())
    if len(line) <= MAX_MESSAGE:
        return line
    return f"{line[: MAX_MESSAGE // 3]} … {line[-MAX_MESSAGE // 2 :]}"
