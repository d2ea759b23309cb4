"""A BERT of some kilobytes with random weights, installed and pinned like a real one; exports in a blink."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from capdex_engine.encode.artefact import EXACT
from capdex_engine.encode.export import write_graphs
from capdex_engine.encode.gates import PARITY_SENTENCES, open_graph
from capdex_engine.encode.lock import (
    MODEL,
    Canonical,
    ExportSettings,
    LockedModel,
    PinnedFile,
    sha256_file,
)
from capdex_engine.encode.toml import to_toml

HIDDEN, LAYERS, WIDE, POSITIONS, MAX_TOKENS = 32, 2, 64, 48, 24
CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": HIDDEN,
    "intermediate_size": WIDE,
    "num_attention_heads": 4,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_model(folder: Path, **config) -> None:
    """Write config.json, model.safetensors and tokenizer.json as a Hugging Face folder has them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(
        json.dumps({**CONFIG, "vocab_size": tokenizer.get_vocab_size(), **config})
    )
    save_file(weights(tokenizer.get_vocab_size()), folder / "model.safetensors")


def write_trained(folder: Path, **config) -> None:
    """Write the model as sentence-transformers saves one."""
    write_model(folder, **config)
    parts = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    files = {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(parts.items())
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": MAX_TOKENS, "do_lower_case": False},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "model_max_length": MAX_TOKENS,
        },
    }
    for name, value in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value))


def write_lock(path: Path, base: LockedModel, default: str, *entries: str) -> None:
    """Write a models.lock with the package ``base`` and further entries, as TOML text each."""
    table = {"kind": "package", **asdict(base)}
    texts = [to_toml(("models", table.pop("name")), table), *entries]
    head = f'format = 1\ndefault = "{default}"\nbase = "{base.name}"\n'
    path.write_text("\n".join([head, *texts]), encoding="utf-8")


def pin(folder: Path, scratch: Path) -> LockedModel:
    """Return the lock entry of the model in ``folder``/model, its vectors measured in ``scratch``."""
    source = folder / "model"
    files = {
        path.name: PinnedFile(sha256_file(path), path.stat().st_size) for path in sorted(source.iterdir())
    }
    model = LockedModel(
        name="tiny",
        package="tiny-model",
        version="1",
        module=folder.name,
        folder="model",
        licence="Apache-2.0",
        dimension=HIDDEN,
        max_tokens=MAX_TOKENS,
        pooling="mean",
        normalise=True,
        prefix="",
        files=files,
        export=ExportSettings(18, ("MatMul", "Gather"), True, True, 0.9, 0.8),
        canonical=Canonical("Find the user", (), 1e-5, (), 1e-2),
    )
    write_graphs(model, source, scratch, lambda message: None)
    fp32, int8 = (
        tuple(float(x) for x in open_graph(model, scratch, name).encode(["Find the user"])[0, :8])
        for name in (EXACT, MODEL)
    )
    return LockedModel.parse(
        "tiny",
        {
            **{name: getattr(model, name) for name in LockedModel.__slots__ if name != "name"},
            "files": {name: {"sha256": file.sha256, "bytes": file.bytes} for name, file in files.items()},
            "export": {name: getattr(model.export, name) for name in ExportSettings.__slots__},
            "canonical": {
                "sentence": "Find the user",
                "fp32": list(fp32),
                "fp32_tolerance": 1e-5,
                "int8": list(int8),
                "int8_tolerance": 1e-2,
            },
        },
    )


def weights(vocabulary: int) -> dict[str, np.ndarray]:
    """Random tensors under Hugging Face's names, the same every time."""
    random = np.random.default_rng(7)
    shapes = {
        "embeddings.word_embeddings.weight": (vocabulary, HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        **_norm("embeddings.LayerNorm"),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for kind in ("query", "key", "value"):
            shapes |= _linear(f"{name}.attention.self.{kind}", HIDDEN, HIDDEN)
        shapes |= _linear(f"{name}.attention.output.dense", HIDDEN, HIDDEN)
        shapes |= _norm(f"{name}.attention.output.LayerNorm")
        shapes |= _linear(f"{name}.intermediate.dense", WIDE, HIDDEN)
        shapes |= _linear(f"{name}.output.dense", HIDDEN, WIDE)
        shapes |= _norm(f"{name}.output.LayerNorm")
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def _linear(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}


def _tokenizer() -> Tokenizer:
    """Words of the parity sentences; cuts at 4 tokens and pads to 12, as a file from training would."""
    words = sorted({word for text in PARITY_SENTENCES for word in text.lower().split()})
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=12)
    return tokenizer
