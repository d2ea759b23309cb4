"""The ``mcpServers`` block of an MCP client -> sources of capdex, without the secrets that stand in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from capdex_engine.errors import ConfigurationError
from capdex_server.mcp_config import SECRET_HEADERS

PLACEHOLDER: Final = "PUT-THE-SECRET-HERE"
_SECRET_NAME: Final = re.compile(
    r"key|token|secret|passw|pwd|credential|auth|bearer|cookie|private|signature|session|\bpat\b|_pat$|dsn",
    re.I,
)
_HARMLESS: Final = re.compile(
    r"(?:true|false|\d{1,9}|[A-Za-z][A-Za-z-]{0,15}|(?:~|\.{1,2})?/[^:@=\s]*|[A-Za-z]:\\[^@=]*)"
)
_WHOLE: Final = re.compile(r"\$\{(?:env:|input:)?([^}:]+)(?::-[^}]*)?\}")
_BEARER: Final = re.compile(r"bearer\s+(.+)", re.I)
_COMMENTS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_BLOCKS: Final = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"))
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Imported:
    """What became of a block."""

    toml: str = ""
    """The sources, to stand in capdex.toml."""
    names: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variable to set -> what it is for; its value stands in the client's file."""
    remarks: list[str] = field(default_factory=list)
    """What was left out or has to be looked at."""


def read_block(text: str) -> dict[str, Any]:
    """Return server name -> entry from a client's file: ``mcpServers``, or ``servers`` as VS Code has it.

    Comments and commas at the end of lists, which some clients write, are read over.

    Raises:
        ConfigurationError: It is no JSON, or has no such block.
    """
    try:
        whole = json.loads(_TRAILING.sub(r"\1", _COMMENTS.sub(r"\1", text)).removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        raise ConfigurationError("The file is no JSON.") from None
    for path in _BLOCKS:
        found: Any = whole
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict):
            return found
    raise ConfigurationError(
        "The file has neither mcpServers (Claude, Cursor and others) nor servers (VS Code): name the file "
        "in which your client keeps its MCP servers."
    )


def import_block(block: Mapping[str, Any]) -> Imported:
    """Return the sources of a block.

    A value of ``env`` or of a header becomes a reference to a variable, unless it plainly is no secret. What
    a client fills in by itself (``${input:…}``, ``${env:…}``) becomes one too.
    """
    imported = Imported()
    tables = []
    for name, entry in block.items():
        table = _Entry(name, entry, imported).table() if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            imported.remarks.append(f"{name}: is no object and is left out.")
        if table is not None:
            imported.names.append(name)
            tables.append(table)
    imported.toml = "\n".join(tables)
    return imported


class _Entry:
    def __init__(self, name: str, entry: dict[str, Any], imported: Imported) -> None:
        self._name = name
        self._entry = entry
        self._imported = imported

    def table(self) -> str | None:
        """Return the source as TOML; None where it cannot be one."""
        entry = self._entry
        if entry.get("disabled") is True or entry.get("enabled") is False:
            self._left_out("it is switched off there")
            return None
        if entry.get("type") in {"sse", "ws"} or entry.get("transport") == "sse":
            self._left_out("it speaks the older SSE transport; ask its maker for Streamable HTTP")
            return None
        url = entry.get("url") or entry.get("serverUrl") or entry.get("httpUrl")
        rows = {"kind": _quoted("mcp")}
        if isinstance(url, str):
            rows |= self._remote(url)
        elif isinstance(entry.get("command"), str):
            rows |= self._local(entry["command"])
        else:
            self._left_out("it has neither command nor url")
            return None
        head = f"[sources.{self._name if _BARE.fullmatch(self._name) else _quoted(self._name)}]"
        return "\n".join([head, *(f"{key} = {value}" for key, value in rows.items())]) + "\n"

    def _left_out(self, why: str) -> None:
        self._imported.remarks.append(f"{self._name}: is left out, since {why}.")

    def _remark(self, text: str) -> None:
        self._imported.remarks.append(f"{self._name}: {text}")

    def _local(self, command: str) -> dict[str, str]:
        given = self._entry.get("args")
        args = [str(each) for each in given] if isinstance(given, list) else []
        words = [command, *self._arguments(args)]
        rows = {"command": "[" + ", ".join(map(_quoted, words)) + "]"}
        env = self._table("env", self._entry.get("env"), self._env_value)
        if env:
            rows["env"] = env
        if isinstance(self._entry.get("cwd"), str):
            rows["cwd"] = _quoted(self._entry["cwd"])
        if "envFile" in self._entry:
            self._remark("its envFile is not read: name each of its variables under env.")
        if any("${" in word for word in [*words, str(self._entry.get("cwd", ""))]):
            self._remark("its command holds ${…}, which its client fills in: write what it stands for.")
        return rows

    def _arguments(self, args: list[str]) -> list[str]:
        """Return the arguments with a placeholder for what follows ``--api-key`` and the like."""
        words: list[str] = []
        follows = False
        for word in args:
            flag, equals, value = word.partition("=")
            if follows and not word.startswith("-"):
                word = self._hidden(words[-1])
            elif equals and value and _SECRET_NAME.search(flag):
                word = f"{flag}={self._hidden(flag)}"
            follows = word.startswith("-") and not equals and bool(_SECRET_NAME.search(word))
            words.append(word)
        return words

    def _hidden(self, flag: str) -> str:
        self._remark(
            f"what stands for {flag} in its arguments is a secret and is not written: let the server take "
            "it from a variable under env, if it can."
        )
        return PLACEHOLDER

    def _remote(self, url: str) -> dict[str, str]:
        rows = {"url": _quoted(self._plain_url(url))}
        headers = self._entry.get("headers")
        plain = dict(headers) if isinstance(headers, dict) else {}
        for name in [name for name in plain if name.lower() == "authorization"]:
            bearer = _BEARER.fullmatch(str(plain[name]).strip())
            if bearer:
                del plain[name]
                rows["token"] = self._variable("TOKEN", bearer[1], "the bearer token")
        table = self._table("headers", plain, self._header_value)
        if table:
            rows["headers"] = table
        return rows

    def _plain_url(self, url: str) -> str:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        secret = [name for name, _ in pairs if _SECRET_NAME.search(name)]
        if secret:
            self._remark(f"{', '.join(secret)} of its url is a secret and is not written.")
        if "@" in parts.netloc:
            self._remark("user and password of its url are not written: use token or headers.")
        query = urlencode([(name, PLACEHOLDER if name in secret else value) for name, value in pairs])
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query))

    def _table(self, what: str, given: Any, value: Callable[[str, str], str]) -> str:
        if given is not None and not isinstance(given, dict):
            self._remark(f"its {what} is no object and is left out.")
        if not isinstance(given, dict) or not given:
            return ""
        pairs = (
            f"{name if _BARE.fullmatch(name) else _quoted(name)} = {value(name, _text(each))}"
            for name, each in given.items()
        )
        return "{ " + ", ".join(pairs) + " }"

    def _env_value(self, name: str, value: str) -> str:
        if not _SECRET_NAME.search(name) and _is_harmless(value):
            return _quoted(value)
        return self._variable(name, value, f"{name} of its environment")

    def _header_value(self, name: str, value: str) -> str:
        secret = name.lower() in SECRET_HEADERS or _SECRET_NAME.search(name)
        if not secret and _is_harmless(value):
            return _quoted(value)
        return self._variable(re.sub(r"[^A-Za-z0-9]+", "_", name), value, f"the header {name}")

    def _variable(self, name: str, value: str, purpose: str) -> str:
        """Return a reference to a variable of capdex's own environment."""
        whole = _WHOLE.fullmatch(value)
        variable = _variable_name(whole[1]) if whole else _variable_name(name)
        told = f"{self._name}: {purpose}"
        taken = self._imported.variables
        if (variable in taken and not whole) or (variable == "TOKEN" and not whole):
            variable = _variable_name(f"{self._name}_{name}")
        taken[variable] = f"{taken[variable]}; {told}" if variable in taken else told
        return f"{{ env = {_quoted(variable)} }}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_harmless(value: str) -> bool:
    if "${" in value:
        return False
    if value.startswith(("http://", "https://")):
        try:
            parts = urlsplit(value)
        except ValueError:
            return False
        return "@" not in parts.netloc and not parts.query
    return not value or _HARMLESS.fullmatch(value) is not None


def _variable_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() or "SECRET"
    return f"_{name}" if name[0].isdigit() else name


def _quoted(text: str) -> str:
    """Return a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
