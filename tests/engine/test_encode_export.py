"""An export is the model's vectors in int8, made once, checked, and put in place whole."""

from __future__ import annotations

import dataclasses
import json
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from capdex_engine.encode import gates
from capdex_engine.encode.artefact import (
    EXACT,
    MANIFEST,
    DamagedArtefact,
    artefact_folder,
    open_artefact,
)
from capdex_engine.encode.export import export, write_graphs
from capdex_engine.encode.gates import require_used_inputs
from capdex_engine.encode.graph import INPUTS, OUTPUT, BertShape, build_bert
from capdex_engine.encode.lock import MODEL, TOKENIZER, sha256_file
from capdex_engine.encode.onnx import OnnxEncoder, open_session
from capdex_engine.encode.prepare import prepare_artefact, prepare_encoder
from capdex_engine.errors import ModelError
from engine.encode_tiny import CONFIG, MAX_TOKENS, pin, weights, write_model

FILES = {MODEL, TOKENIZER, MANIFEST}


def silent(message: str) -> None:
    """For calls whose messages do not matter."""


def replace_canonical(model, **changes):
    return dataclasses.replace(model, canonical=dataclasses.replace(model.canonical, **changes))


def replace_export(model, **changes):
    return dataclasses.replace(model, export=dataclasses.replace(model.export, **changes))


def graph_outputs(ids, mask):
    shape = BertShape.from_config(CONFIG, max_tokens=MAX_TOKENS)
    session = open_session(build_bert(weights(20), shape, opset=18).SerializeToString())
    return session.run(None, {INPUTS[0]: np.array(ids), INPUTS[1]: np.array(mask)})[0]


def test_padding_does_not_change_a_vector():
    alone = graph_outputs([[2, 7, 9, 3]], [[1, 1, 1, 1]])
    padded = graph_outputs([[2, 7, 9, 3, 0, 0], [2, 5, 6, 7, 8, 3]], [[1, 1, 1, 1, 0, 0], [1] * 6])
    np.testing.assert_allclose(padded[0], alone[0], atol=1e-6)


def test_both_inputs_and_the_order_of_tokens_matter():
    base = graph_outputs([[2, 7, 9, 3]], [[1, 1, 1, 1]])
    for ids, mask in (([2, 8, 9, 3], [1] * 4), ([2, 9, 7, 3], [1] * 4), ([2, 7, 9, 3], [1, 1, 1, 0])):
        assert np.abs(graph_outputs([ids], [mask]) - base).max() > 1e-3


def test_the_same_weights_give_the_same_bytes(tiny, tmp_path, tiny_home):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_graphs(tiny, tiny_home[0] / "tiny_model" / "model", tmp_path / name, silent)
    for file in (EXACT, MODEL):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_graph_is_valid_onnx_with_unit_vectors_out():
    graph = build_bert(weights(20), BertShape.from_config(CONFIG, max_tokens=MAX_TOKENS), opset=18)
    onnx.checker.check_model(graph, full_check=True)
    assert [value.name for value in graph.graph.output] == [OUTPUT]
    assert np.linalg.norm(graph_outputs([[2, 3]], [[1, 1]])) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "change", [{"model_type": "roberta"}, {"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_another_architecture_is_refused(tiny, tmp_path, change):
    write_model(tmp_path / "source", **change)
    with pytest.raises(ModelError):
        write_graphs(tiny, tmp_path / "source", tmp_path, silent)


@pytest.mark.parametrize("damage", [b"", b"not tensors at all"])
def test_weights_that_cannot_be_read_are_refused(tiny, tmp_path, damage):
    write_model(tmp_path / "source")
    (tmp_path / "source" / "model.safetensors").write_bytes(damage)
    with pytest.raises(ModelError):
        write_graphs(tiny, tmp_path / "source", tmp_path, silent)


def test_a_missing_layer_is_refused(tiny, tmp_path):
    write_model(tmp_path / "source", num_hidden_layers=3)
    with pytest.raises(ModelError):
        write_graphs(tiny, tmp_path / "source", tmp_path, silent)


@pytest.mark.parametrize("change", [{"pooling": "cls"}, {"normalise": False}])
def test_another_pooling_is_refused(tiny, tmp_path, change):
    with pytest.raises(ModelError):
        export(dataclasses.replace(tiny, **change), tmp_path / "export", silent)


def test_an_export_holds_its_files_and_a_manifest_with_hashes(tiny, tmp_path):
    artefact = prepare_artefact(tmp_path, tiny, silent)
    assert artefact.folder == artefact_folder(tmp_path, tiny)
    assert {path.name for path in artefact.folder.iterdir()} == FILES
    manifest = json.loads((artefact.folder / MANIFEST).read_text())
    assert manifest["inputs"] == {name: file.sha256 for name, file in tiny.files.items()}
    assert manifest["outputs"][MODEL]["sha256"] == sha256_file(artefact.model) == artefact.digest
    assert manifest["parity"]["mean"] > 0.9
    assert list(artefact.folder.parent.iterdir()) == [artefact.folder]


def test_a_good_export_is_opened_without_a_word_and_without_the_package(tiny, tmp_path):
    first = prepare_artefact(tmp_path, tiny, silent)
    told = []
    again = prepare_artefact(tmp_path, dataclasses.replace(tiny), told.append)
    assert (again, told) == (first, [])


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "empty"])
def test_a_damaged_export_is_made_anew_and_said_so(tiny, tmp_path, name, damage):
    first = prepare_artefact(tmp_path, tiny, silent)
    path = first.folder / name
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-9], "flipped": bytes([data[0] ^ 1]) + data[1:]}.get(damage, b""))
    if damage == "missing":
        path.unlink()
    with pytest.raises(DamagedArtefact):
        open_artefact(first.folder, tiny)
    told = []
    assert prepare_artefact(tmp_path, tiny, told.append) == first
    assert str(first.folder) in told[0]
    assert {path.name for path in first.folder.iterdir()} == FILES
    assert list(first.folder.parent.iterdir()) == [first.folder]


@pytest.mark.parametrize("manifest", ["[]", "{}", '"x"', "null", '{"format": 99, "key": "", "outputs": {}}'])
def test_a_strange_manifest_counts_as_damage(tiny, tmp_path, manifest):
    folder = prepare_artefact(tmp_path, tiny, silent).folder
    (folder / MANIFEST).write_text(manifest)
    with pytest.raises(DamagedArtefact):
        open_artefact(folder, tiny)


def test_an_export_of_another_lock_entry_is_not_taken(tiny, tmp_path):
    folder = prepare_artefact(tmp_path, tiny, silent).folder
    with pytest.raises(DamagedArtefact):
        open_artefact(folder, dataclasses.replace(tiny, prefix="query: "))


def test_a_file_in_the_place_of_the_folder_is_replaced(tiny, tmp_path):
    target = artefact_folder(tmp_path, tiny)
    target.parent.mkdir(parents=True)
    target.write_text("in the way")
    assert prepare_artefact(tmp_path, tiny, silent).folder == target


def test_exports_that_race_agree_on_one_folder(tiny, tmp_path):
    found, start = [], threading.Barrier(3)

    def run():
        start.wait()
        found.append(prepare_artefact(tmp_path, tiny, silent))

    workers = [threading.Thread(target=run) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [open_artefact(artefact_folder(tmp_path, tiny), tiny)] * 3
    assert list((tmp_path / "models").iterdir()) == [found[0].folder]


def test_a_cache_that_cannot_be_written_is_a_model_error(tiny, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ModelError) as caught:
        prepare_artefact(tmp_path / "cache", tiny, silent)
    assert str(tmp_path / "cache") in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: replace_canonical(model, fp32=(9.0,) * 8),
        lambda model: replace_canonical(model, int8=(9.0,) * 8),
        lambda model: replace_canonical(model, int8=(float("nan"),) * 8),
        lambda model: replace_export(model, parity_mean=1.01),
        lambda model: replace_export(model, parity_min=1.01),
        lambda model: dataclasses.replace(model, dimension=31),
    ],
    ids=["fp32", "int8", "nan", "mean", "min", "dimension"],
)
def test_an_export_that_fails_a_gate_leaves_nothing(tiny, tmp_path, change):
    with pytest.raises(ModelError):
        prepare_artefact(tmp_path, change(tiny), silent)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_wrong_hash_stops_the_export_before_it_starts(tiny, tmp_path):
    other = dataclasses.replace(tiny.files["config.json"], sha256="0" * 64)
    with pytest.raises(ModelError) as caught:
        prepare_artefact(
            tmp_path, dataclasses.replace(tiny, files={**tiny.files, "config.json": other}), silent
        )
    assert caught.value.details["expected"] == "0" * 64
    assert list(tmp_path.iterdir()) == []


def test_an_input_that_no_node_reads_is_refused():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("a", "b", "out")]
    node = helper.make_node("Identity", ["a"], ["out"])
    require_used_inputs(helper.make_model(helper.make_graph([node], "g", values[:1], values[2:])))
    with pytest.raises(ModelError):
        require_used_inputs(helper.make_model(helper.make_graph([node], "g", values[:2], values[2:])))


def test_the_parity_sentences_differ():
    assert len(set(gates.PARITY_SENTENCES)) == len(gates.PARITY_SENTENCES) >= 16


def test_the_tokenizers_own_cut_and_padding_are_replaced(tiny, tmp_path):
    encoder = prepare_encoder(tmp_path, tiny, silent)
    short, longer, longest, beyond = encoder.encode(
        ["user", "user " * 10, "user " * (MAX_TOKENS - 2), "user " * 40]
    )
    assert np.abs(longer - longest).max() > 1e-4
    assert np.abs(short - longer).max() > 1e-4
    np.testing.assert_array_equal(longest, beyond)


def test_a_prefix_stands_before_every_text(tiny, tmp_path):
    plain = prepare_encoder(tmp_path, tiny, silent)
    files = artefact_folder(tmp_path, tiny)
    prefixed = OnnxEncoder(
        files / MODEL, files / TOKENIZER, identity="p", max_tokens=MAX_TOKENS, prefix="delete a "
    )
    np.testing.assert_array_equal(prefixed.encode(["user"]), plain.encode(["delete a user"]))


def test_a_retrained_model_is_another_encoder(tiny, tiny_home, tmp_path, monkeypatch):
    write_model(tmp_path / "tiny_other" / "model", layer_norm_eps=1e-5)
    (tmp_path / "tiny_other" / "__init__.py").touch()
    (tmp_path / "scratch").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    other = pin(tmp_path / "tiny_other", tmp_path / "scratch")
    encoders = [prepare_encoder(tmp_path / "cache", model, silent) for model in (tiny, other)]
    assert encoders[0].identity != encoders[1].identity
