"""Which base model is used, and which is refused."""

import shutil
from pathlib import Path

import pytest

from helios.errors import ModelError
from helios.models import base
from helios.models.base import FILES, WEIGHTS_SHA256, find_base_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the right files but other weights."""
    installed = find_base_model().folder
    for name in FILES[:2]:
        shutil.copy(installed / name, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    return tmp_path


def test_the_installed_weights_are_the_pinned_ones():
    found = find_base_model()
    assert found.sha256 == WEIGHTS_SHA256
    assert found.source in ("package", "hub cache")


def test_a_configured_folder_may_hold_other_weights(folder):
    found = find_base_model(str(folder))
    assert (found.folder, found.source) == (folder, "config")
    assert found.sha256 != WEIGHTS_SHA256


def test_other_weights_in_the_place_of_the_pinned_ones_are_refused(folder, monkeypatch):
    monkeypatch.setattr(base, "_hub_cache", lambda: folder)
    with pytest.raises(ModelError, match="has SHA-256 .*expected 53aa5117.*set encoder.model=FOLDER"):
        find_base_model()


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_lacks_a_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{folder}: no {name}; expected a folder with config.json"):
        find_base_model(str(folder))
