"""pydantic's findings -> one :class:`ConfigurationError` that names file and key and echoes no value."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from capdex_engine.errors import ConfigurationError


def configuration_error(
    error: ValidationError,
    model: type[BaseModel],
    *,
    origin: str,
    from_environ: Mapping[str, Any] | None = None,
) -> ConfigurationError:
    """Return every finding as one line each.

    Args:
        error: What pydantic found; inputs are left out of the message, since they may be secrets.
        model: The model that was validated, to suggest known keys.
        origin: Where the values come from: the TOML file, or the command line.
        from_environ: The values that came from the environment, nested like the model.
    """
    lines = []
    for finding in error.errors(include_url=False, include_input=False, include_context=False):
        loc = finding["loc"]
        where = "environment" if from_environ and _holds(from_environ, loc) else origin
        lines.append(f"{where}: {_key(loc)}: {_what(finding['type'], finding['msg'], loc, model)}")
    return ConfigurationError("\n".join(lines))


def _key(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _holds(tree: object, loc: tuple[int | str, ...]) -> bool:
    for part in loc:
        if not isinstance(tree, Mapping):
            return tree is not None
        if part not in tree:
            return False
        tree = tree[part]
    return True


def _what(kind: str, message: str, loc: tuple[int | str, ...], model: type[BaseModel]) -> str:
    if kind == "missing":
        return "is missing"
    if kind != "extra_forbidden":
        return message.removeprefix("Value error, ").removeprefix("Input ")
    known = sorted(_known_keys(loc[:-1], model))
    near = difflib.get_close_matches(str(loc[-1]), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
    return f"is no known key; {hint}"


def _known_keys(loc: tuple[int | str, ...], model: type[BaseModel]) -> set[str]:
    """Return the keys of the table at ``loc``, as they are written in the file."""
    for part in loc:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        field = fields.get(str(part))
        if field is not None:
            inner = next(_models_in(field.annotation), None)
            model = inner or model
    return {field.alias or name for name, field in model.model_fields.items()}


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
