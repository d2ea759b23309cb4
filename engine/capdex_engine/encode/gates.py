"""What an export must pass before it is used: inputs, pinned vectors, and how little int8 loses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray

from ..errors import ModelError
from .artefact import EXACT
from .canonical import require_canonical, require_vector
from .lock import MODEL, TOKENIZER, LockedModel
from .onnx import OnnxEncoder

PARITY_SENTENCES: Final = (
    "create a pull request review comment",
    "GET /repos/{owner}/{repo}/issues/{issue_number}/labels",
    "listVirtualMachineScaleSetsInResourceGroup",
    "Delete a webhook. Requires admin rights; answers 204 when nothing is left to do.",
    "How do I refund only a part of a payment that was captured last week?",
    "Retrieve the current balance of an account, by currency.",
    "我想取消昨天的订单",
    "Wie ändere ich die Lieferadresse einer Bestellung?",
    "Supprimer tous les messages non lus de la boîte de réception",
    "x_api_key X-Rate-Limit-Remaining ETag If-None-Match 304 412 429",
    "deploy 🚀 the newest release 🎉 to production",
    "user",
    "",
    "Get a user; then list the user's teams, add the user to the team named billing and remove every "
    "pending invitation.",
    "Upload a file in several parts: start the upload, send each part with its number and checksum, then "
    "complete it so that the parts become one object. Parts may be sent in any order and at the same time; "
    "a part that is sent again replaces the earlier one.",
    " ".join(f"Parameter column{i} sets the width of column {i} of the exported sheet." for i in range(40)),
)
"""Short and long, prose and identifiers, several scripts, one text beyond the model's length, one empty."""


def check(model: LockedModel, folder: Path) -> dict[str, float]:
    """Apply every gate to the float32 and the int8 graph in ``folder``; return the parity measured.

    The float32 graph stands in for torch: its canonical vector must be torch's, which models.lock
    pins. So torch, which takes ten seconds to import, is not needed here.
    """
    exact, small = (open_graph(model, folder, name) for name in (EXACT, MODEL))
    require_used_inputs(onnx.load(folder / MODEL))
    if small.dimension != model.dimension:
        raise ModelError(
            f"{model.name} has {small.dimension} dimensions, models.lock says {model.dimension}."
        )
    pinned = model.canonical
    require_vector(exact, pinned.sentence, pinned.fp32, pinned.fp32_tolerance, "float32")
    require_canonical(model, small)
    return _require_parity(
        model, np.sum(exact.encode(PARITY_SENTENCES) * small.encode(PARITY_SENTENCES), axis=1)
    )


def require_used_inputs(graph: onnx.ModelProto) -> None:
    """Refuse a graph with an input that no node reads: ``ModelError``."""
    used = {name for node in graph.graph.node for name in node.input}
    unused = [value.name for value in graph.graph.input if value.name not in used]
    if unused:
        raise ModelError(
            f"The exported graph does not use its input {unused[0]}. Report this as a bug of capdex."
        )


def open_graph(model: LockedModel, folder: Path, name: str) -> OnnxEncoder:
    """Open one of the graphs in ``folder`` as an encoder."""
    return OnnxEncoder(
        folder / name,
        folder / TOKENIZER,
        identity=name,
        max_tokens=model.max_tokens,
        prefix=model.prefix,
        threads=1,
    )


def _require_parity(model: LockedModel, cosines: NDArray[np.float32]) -> dict[str, float]:
    mean, lowest = float(cosines.mean()), float(cosines.min())
    if not (mean >= model.export.parity_mean and lowest >= model.export.parity_min):
        raise ModelError(
            f"The int8 export of {model.name} is too far from float32: cosine {mean:.4f} on average, "
            f"{lowest:.4f} at worst; models.lock asks for {model.export.parity_mean} and "
            f"{model.export.parity_min}. Install the versions of constraints.txt."
        )
    return {"mean": round(mean, 4), "min": round(lowest, 4)}
