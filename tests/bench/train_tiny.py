"""Made-up training data of a dozen APIs, and a base model of some kilobytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.helpers import write_jsonl
from capdex_bench.train.corpus import Corpus, read_corpus
from engine.encode_tiny import write_model

NOUNS = ("user", "invoice", "order", "team", "file", "report")
VERBS = ("list", "create", "delete")

Row = tuple[str, ...]
"""Document, operations, kind, request."""


def operation_row(document: str, key: str, **fields: object) -> dict[str, object]:
    return {
        "doc": document,
        "api": f"The {document} API",
        "key": key,
        "name": None,
        "summary": "",
        "description": "",
        "params": [],
        **fields,
    }


def write_train(folder: Path, operations: Sequence[Mapping[str, object]], requests: Sequence[Row]) -> Path:
    write_jsonl(folder / "operations.jsonl", operations)
    write_requests(folder / "requests.tsv", requests)
    return folder


def write_requests(path: Path, requests: Sequence[Row]) -> Path:
    lines = ["document\toperations\tkind\trequest", *("\t".join(row) for row in requests)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def corpus(folder: Path, operations: Sequence[Mapping[str, object]], requests: Sequence[Row]) -> Corpus:
    """Read made-up data, and nothing of what is committed."""
    return read_corpus(write_train(folder, operations, requests), own=folder / "own")


def apis(count: int) -> tuple[list[dict[str, object]], list[Row]]:
    """Return the rows of ``count`` documents, six operations each, three requests for most."""
    operations: list[dict[str, object]] = []
    requests: list[Row] = []
    for number in range(count):
        document = f"api{number}.test.json"
        nouns = (NOUNS[number % 6], NOUNS[(number + 1) % 6])
        keys = {(verb, noun): f"{_METHODS[verb]} /{noun}s{_PATHS[verb]}" for verb in VERBS for noun in nouns}
        for (verb, noun), key in keys.items():
            operations.append(
                operation_row(document, key, name=f"{verb}_{noun}", summary=f"{verb} the {noun}")
            )
            requests += [
                (document, key, kind, f"{words} {verb} {noun} of {number}")
                for kind, words in (("natural", "please now"), ("terse", "quick"), ("typo", "teh"))
            ]
        both = f"{keys['list', nouns[0]]} ; {keys['create', nouns[1]]}"
        requests.append((document, both, "multi", f"find a {nouns[0]} then add a {nouns[1]} in {number}"))
        requests.append((document, "-", "none", f"sing a song for {number}"))
    return operations, requests


_METHODS = {"list": "GET", "create": "POST", "delete": "DELETE"}
_PATHS = {"list": "", "create": "", "delete": "/{id}"}


def write_base(folder: Path) -> Path:
    """Write the tiny model as a sentence-transformers folder."""
    write_model(folder)
    modules = [
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
        ("2_Normalize", "sentence_transformers.models.Normalize"),
    ]
    files = {
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": kind}
            for number, (path, kind) in enumerate(modules)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 40, "do_lower_case": False},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "model_max_length": 40,
        },
    }
    for name, value in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder
