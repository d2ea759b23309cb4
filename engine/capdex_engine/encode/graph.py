"""A BERT encoder as an ONNX graph, built from its weights.

Built by hand rather than traced: the same weights give the same bytes, torch is not needed, and every
input is used by construction. Mean pooling and L2 normalisation stand inside the graph, token types are
zeros folded into the position table, and the scale of attention is folded into the query weights.

Shapes below: B texts, T tokens, H hidden size, A heads, D = H / A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

INPUTS: Final = ("input_ids", "attention_mask")
OUTPUT: Final = "embedding"

_MASKED: Final = -10000.0  # added to the score of a padded token; its softmax is exactly 0 in float32
_IR_VERSION: Final = 10  # readable by every onnxruntime of the range in pyproject.toml

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class BertShape:
    """What the graph needs to know of a BERT's config.json."""

    layers: int
    heads: int
    hidden: int
    max_tokens: int
    epsilon: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, max_tokens: int) -> BertShape:
        """Read a Hugging Face config; ``ValueError`` for anything but a BERT with exact GELU."""
        kind = (
            config.get("model_type"),
            config.get("hidden_act"),
            config.get("position_embedding_type", "absolute"),
        )
        if kind != ("bert", "gelu", "absolute"):
            raise ValueError(f"only a BERT with GELU and absolute positions can be exported, not {kind}")
        return cls(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            hidden=int(config["hidden_size"]),
            max_tokens=min(max_tokens, int(config["max_position_embeddings"])),
            epsilon=float(config["layer_norm_eps"]),
        )


@dataclass(slots=True)
class _Graph:
    """Nodes and constants in the order they were added; names are numbered, so they are stable."""

    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant("i" + "_".join(map(str, values)), np.array(values, dtype=np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(f"f{value!r}", np.array(value, dtype=np.float32))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        name = f"n{len(self.nodes)}_{operator}"
        names = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=name, **attributes))
        return name if outputs == 1 else names


def build_bert(weights: Weights, shape: BertShape, *, opset: int) -> onnx.ModelProto:
    """Return the float32 graph: ``input_ids`` and ``attention_mask`` (B, T) int64 -> ``embedding`` (B, H).

    Args:
        weights: The tensors of ``model.safetensors`` under Hugging Face's BERT names.
        shape: From the model's config.
        opset: At least 18 (``ReduceSum`` and ``ReduceL2`` with axes as input, ``LayerNormalization``).
    """
    graph = _Graph()
    hidden = _embeddings(graph, weights, shape)
    mask = graph.add("Cast", INPUTS[1], to=TensorProto.FLOAT)
    bias = _attention_bias(graph, mask)
    for layer in range(shape.layers):
        hidden = _layer(graph, _part(weights, f"encoder.layer.{layer}."), shape, hidden, bias, f"l{layer}")
    _pool(graph, hidden, mask)
    return _model(graph, shape, opset)


def _part(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def _embeddings(graph: _Graph, weights: Weights, shape: BertShape) -> str:
    part = _part(weights, "embeddings.")
    positions = (
        part["position_embeddings.weight"][: shape.max_tokens] + part["token_type_embeddings.weight"][0]
    )
    words = graph.add("Gather", graph.constant("words", part["word_embeddings.weight"]), INPUTS[0])
    length = graph.add("Shape", INPUTS[0], start=1, end=2)
    places = graph.add("Slice", graph.constant("positions", positions), graph.ints(0), length, graph.ints(0))
    return _normalised(graph, graph.add("Add", words, places), _part(part, "LayerNorm."), shape, "embeddings")


def _attention_bias(graph: _Graph, mask: str) -> str:
    """(B, T) of ones and zeros -> (B, 1, 1, T) of 0 and a large negative number."""
    padded = graph.add("Sub", graph.scalar(1.0), mask)
    return str(graph.add("Unsqueeze", graph.add("Mul", padded, graph.scalar(_MASKED)), graph.ints(1, 2)))


def _layer(graph: _Graph, part: Weights, shape: BertShape, hidden: str, bias: str, name: str) -> str:
    context = _attention(graph, _part(part, "attention.self."), shape, hidden, bias, name)
    attended = _linear(graph, context, _part(part, "attention.output.dense."), f"{name}.out")
    hidden = _normalised(
        graph,
        graph.add("Add", attended, hidden),
        _part(part, "attention.output.LayerNorm."),
        shape,
        f"{name}.a",
    )
    wide = _gelu(graph, _linear(graph, hidden, _part(part, "intermediate.dense."), f"{name}.up"))
    narrow = _linear(graph, wide, _part(part, "output.dense."), f"{name}.down")
    return _normalised(
        graph, graph.add("Add", narrow, hidden), _part(part, "output.LayerNorm."), shape, f"{name}.b"
    )


def _attention(graph: _Graph, part: Weights, shape: BertShape, hidden: str, bias: str, name: str) -> str:
    """Multi-head self-attention before its output projection: (B, T, H) -> (B, T, H)."""
    packed = _linear(graph, hidden, _packed(part, shape), f"{name}.qkv")
    split = graph.add("Reshape", packed, graph.ints(0, 0, 3, shape.heads, shape.hidden // shape.heads))
    query, key, value = (
        graph.add(
            "Gather",
            graph.add("Transpose", split, perm=[2, 0, 3, 1, 4]),
            graph.constant(f"row{i}", np.array(i, dtype=np.int64)),
        )
        for i in range(3)
    )
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
    weights = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    context = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
    return str(graph.add("Reshape", context, graph.ints(0, 0, shape.hidden)))


def _packed(part: Weights, shape: BertShape) -> Weights:
    """Query, key and value as one projection; 1 / sqrt(D) goes into the query."""
    scale = np.float32((shape.hidden // shape.heads) ** -0.5)
    rows = {
        kind: [part[f"{name}.{kind}"] for name in ("query", "key", "value")] for kind in ("weight", "bias")
    }
    return {kind: np.concatenate([query * scale, key, value]) for kind, (query, key, value) in rows.items()}


def _linear(graph: _Graph, x: str, part: Weights, name: str) -> str:
    product = graph.add("MatMul", x, graph.constant(f"{name}.weight", part["weight"].T))
    return str(graph.add("Add", product, graph.constant(f"{name}.bias", part["bias"])))


def _normalised(graph: _Graph, x: str, part: Weights, shape: BertShape, name: str) -> str:
    scale = graph.constant(f"{name}.scale", part["weight"])
    shift = graph.constant(f"{name}.shift", part["bias"])
    return str(graph.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=shape.epsilon))


def _gelu(graph: _Graph, x: str) -> str:
    """Compute x / 2 * (1 + erf(x / sqrt 2)), in the form that onnxruntime fuses into one kernel."""
    bell = graph.add("Add", graph.add("Erf", graph.add("Div", x, graph.scalar(2.0**0.5))), graph.scalar(1.0))
    return str(graph.add("Mul", graph.add("Mul", x, bell), graph.scalar(0.5)))


def _pool(graph: _Graph, hidden: str, mask: str) -> None:
    """Mean over the tokens that are not padding, then unit length.

    The division by the number of tokens is left out: the normalisation undoes it.
    """
    kept = graph.add("Mul", hidden, graph.add("Unsqueeze", mask, graph.ints(2)))
    total = graph.add("ReduceSum", kept, graph.ints(1), keepdims=0)
    length = graph.add("Max", graph.add("ReduceL2", total, graph.ints(1), keepdims=1), graph.scalar(1e-12))
    graph.nodes.append(helper.make_node("Div", [total, length], [OUTPUT], name=OUTPUT))


def _model(graph: _Graph, shape: BertShape, opset: int) -> onnx.ModelProto:
    sides: Sequence[str] = ("batch", "tokens")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sides) for name in INPUTS]
    outputs = [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", shape.hidden])]
    body = helper.make_graph(graph.nodes, "bert", inputs, outputs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="capdex")
    # The quantiser logs a warning about shapes unless told, as here, that they are known.
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    return model
