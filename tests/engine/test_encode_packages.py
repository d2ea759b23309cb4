"""Where a package is absent that serving does without, the error is the line to type."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError

import pytest

from capdex_engine.encode import load_encoder, packages
from capdex_engine.encode.packages import require, requirement
from capdex_engine.encode.prepare import prepare_encoder
from capdex_engine.errors import ModelError


@pytest.fixture
def absent(monkeypatch):
    """Make packages look as if they were not installed."""

    def hide(*modules: str) -> None:
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)

    return hide


def refused(call, *args, **options) -> str:
    with pytest.raises(ModelError) as caught:
        call(*args, **options)
    assert caught.value.code == "model_error"
    return caught.value.message


def test_what_is_installed_passes_and_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "never_imported.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)
    require("This", ("never-imported", "numpy"))


def test_the_line_to_type_has_the_versions_that_capdex_asks_for(absent):
    absent("onnx", "safetensors")
    message = refused(require, "This", ("onnx", "numpy", "safetensors"), beside=("weights==1",))
    line = message.partition("Run: pip install ")[2]
    assert line == f"'{requirement('onnx')}' '{requirement('safetensors')}' 'weights==1'"
    assert all(sign in requirement("onnx") for sign in (">=", "<"))


def test_a_package_that_capdex_does_not_ask_for_goes_by_its_name():
    assert requirement("no-such-package") == "no-such-package"


def test_an_extra_of_capdex_is_no_dependency(monkeypatch):
    asked = ['One.Two>=2; extra == "peers"', "one_two>=1; python_version > '3'"]
    monkeypatch.setattr(packages, "requires", lambda _: asked)
    assert requirement("one-two") == "one_two>=1"


def test_a_checkout_that_is_not_installed_names_the_package_alone(monkeypatch):
    def fail(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packages, "requires", fail)
    assert requirement("onnx") == "onnx"


def test_a_local_model_says_to_install_sentence_transformers(absent, tmp_path):
    (tmp_path / "modules.json").write_text("[]")
    absent("sentence_transformers")
    assert f"pip install '{requirement('sentence-transformers')}'" in refused(
        load_encoder, tmp_path / "cache", model=str(tmp_path)
    )


def test_a_missing_folder_is_told_before_a_missing_package(absent, tmp_path):
    absent("sentence_transformers")
    assert "pip install" not in refused(load_encoder, tmp_path, model=str(tmp_path / "nowhere"))


def test_an_export_names_all_that_it_needs_at_once(absent, tiny, tmp_path):
    absent("onnx", "safetensors")
    message = refused(prepare_encoder, tmp_path, tiny, lambda _: None)
    assert all(f"'{one}'" in message for one in (requirement("onnx"), tiny.requirement))
    assert not any(tmp_path.iterdir())


def test_an_export_that_is_in_place_needs_none_of_it(absent, tiny, tmp_path):
    made = prepare_encoder(tmp_path, tiny, lambda _: None)
    absent("onnx", "safetensors")
    assert prepare_encoder(tmp_path, tiny, lambda _: None).identity == made.identity
