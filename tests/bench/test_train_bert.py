from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch

from bench.train_tiny import write_base
from capdex_bench.train.bert import STEP, Shape, pack
from capdex_bench.train.model import Model, base_folder
from capdex_engine.encode.gates import PARITY_SENTENCES
from capdex_engine.encode.lock import read_lock
from capdex_engine.errors import ModelError

IDS = [[2, 7, 3], [2, 5, 6, 7, 8, 9, 10, 11, 3], [2, 4, 3], [2, *range(4, 20), 3], [2, 3]]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(write_base(tmp_path / "base"))


def test_texts_lie_sorted_by_padded_length() -> None:
    packed = pack(IDS)
    assert packed.groups == ((3, STEP), (1, 2 * STEP), (1, 3 * STEP))
    assert packed.order.tolist() == [0, 3, 1, 4, 2]
    assert len(packed.ids) == len(packed.positions) == len(packed.texts) == 8 * STEP
    assert (packed.texts == packed.count).sum() == 8 * STEP - sum(map(len, IDS))


def test_vectors_are_those_of_the_library(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import BertConfig, BertModel

        config = BertConfig(**json.loads((model.folder / "config.json").read_text()))
        library = BertModel(config, add_pooling_layer=False).eval()  # type: ignore[no-untyped-call]
    library.load_state_dict({name: value.detach() for name, value in model.weights.items()}, strict=False)
    found = model.embed(IDS, precision="fp32")
    for ids, vector in zip(IDS, found, strict=True):
        with torch.no_grad():
            states = library(input_ids=torch.tensor([ids])).last_hidden_state[0]
        expected = torch.nn.functional.normalize(states.mean(0), dim=0)
        assert torch.allclose(vector, expected, atol=1e-5)


def test_a_text_does_not_depend_on_its_neighbours(model: Model) -> None:
    together = model.embed(IDS, precision="fp32")
    alone = torch.cat([model.embed([ids], precision="fp32") for ids in IDS])
    assert torch.allclose(together, alone, atol=1e-5)


def test_bfloat16_is_close(model: Model) -> None:
    exact, rough = (model.embed(IDS, precision=precision) for precision in ("fp32", "bf16"))
    assert rough.dtype == torch.float32
    assert (exact * rough).sum(1).min() > 0.99


def test_gradients_reach_every_weight_that_takes_part(model: Model) -> None:
    model.embed(IDS, precision="bf16")[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert [name for name, value in model.weights.items() if value.grad is None] == []


def test_dropout_changes_the_vectors_and_the_seed_brings_them_back(model: Model) -> None:
    torch.manual_seed(1)
    one = model.embed(IDS, precision="fp32", dropout=0.3)
    two = model.embed(IDS, precision="fp32", dropout=0.3)
    torch.manual_seed(1)
    again = model.embed(IDS, precision="fp32", dropout=0.3)
    assert not torch.allclose(one, two)
    assert torch.equal(one, again)


def test_texts_are_cut_and_keep_their_end(model: Model) -> None:
    (ids,) = model.tokens(["list the users and everything else that there is"], 5)
    assert len(ids) == 5
    assert (ids[0], ids[-1]) == (2, 3)


def test_vectors_come_in_the_order_of_the_texts(model: Model) -> None:
    texts = list(PARITY_SENTENCES[:6])
    found = model.vectors(texts, 40)
    assert found.shape == (6, model.hidden)
    for text, row in zip(texts, found, strict=True):
        assert row == pytest.approx(model.vectors([text], 40)[0], abs=1e-5)


@pytest.mark.parametrize("fault", [{"model_type": "gpt"}, {"hidden_act": "relu"}])
def test_another_kind_of_model_is_refused(tmp_path: Path, fault: dict[str, object]) -> None:
    folder = write_base(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fault}))
    with pytest.raises(ModelError):
        Model(folder)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        Model(tmp_path)


def test_the_base_is_the_given_folder_or_the_pinned_model(tmp_path: Path) -> None:
    assert base_folder(tmp_path) == tmp_path
    assert (base_folder(None) / "config.json").is_file()


def test_the_pinned_model_gives_its_pinned_vector() -> None:
    pinned = read_lock().base_model
    vector = Model(base_folder(None)).vectors([pinned.canonical.sentence], pinned.max_tokens)[0]
    assert vector[: len(pinned.canonical.fp32)] == pytest.approx(pinned.canonical.fp32, abs=1e-5)


def test_the_shape_is_read_from_the_configuration() -> None:
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "layer_norm_eps": 1e-12,
    }
    assert Shape.from_config(config) == Shape(6, 12, 1e-12)
