"""The encoder that serves: an int8 graph under onnxruntime, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

_ALONE: Final = 16  # texts up to which one thread is quicker than starting several
_CHUNK: Final = 256  # texts tokenised at a time; bounds the memory of a bulk build
_MAX_CHARACTERS: Final = 20_000  # far beyond max_tokens; keeps a huge text from holding the tokenizer
_ERRORS_ONLY: Final = 3  # onnxruntime's log level


class OnnxEncoder:
    """Encodes each text by itself, several of them at once on ``threads`` threads.

    Dynamic int8 quantisation takes one scale per tensor, so in a padded batch a text's vector would
    depend on its neighbours. Alone, the vector is a function of the text: cached, fresh and reordered
    builds agree to the bit, and padding costs nothing. One thread loses about an eighth of its speed.

    Args:
        model: Graph with inputs ``input_ids`` and ``attention_mask`` and unit-length output.
        tokenizer: ``tokenizer.json`` of the model; its own truncation and padding are replaced.
        identity: Of the graph, see ``Encoder``.
        max_tokens: Longer texts are cut, special tokens included in the count.
        prefix: Put before every text.
        threads: For calls with many texts; ``None`` takes all cores. A query always runs on one.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        identity: str,
        max_tokens: int,
        prefix: str = "",
        threads: int | None = None,
    ) -> None:
        self.identity = identity
        self.threads = threads or os.cpu_count() or 1
        self._prefix = prefix
        self._tokenizer = _load_tokenizer(tokenizer, max_tokens)
        self._session = open_session(model)
        self.dimension = int(self._session.get_outputs()[0].shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32, rows of length 1. Safe to call from several threads."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, vector in enumerate(self._vectors(texts)):
            vectors[row] = vector
        return vectors

    def _vectors(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        if self.threads == 1 or len(texts) <= _ALONE:
            yield from map(self._run, self._tokens(texts))
            return
        with ThreadPoolExecutor(self.threads, thread_name_prefix="encode") as pool:
            for start in range(0, len(texts), _CHUNK):
                yield from pool.map(self._run, self._tokens(texts[start : start + _CHUNK]))

    def _tokens(self, texts: Iterable[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast([clean(self._prefix + text) for text in texts])

    def _run(self, tokens: Encoding) -> NDArray[np.float32]:
        vectors: list[NDArray[np.float32]] = self._session.run(
            None, {"input_ids": [tokens.ids], "attention_mask": [tokens.attention_mask]}
        )
        return vectors[0][0, :]


def clean(text: str) -> str:
    """Cut a huge text, and replace lone surrogates (JSON may hold them), which no tokenizer takes."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def open_session(model: Path | bytes) -> Any:
    """Open a graph with one thread per run: runs of several threads share the session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    # The file itself may cut at 128 tokens and pad every text to 128: settings of its training.
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=max_tokens)
    return tokenizer
