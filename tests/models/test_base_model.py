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


@pytest.fixture
def cached_revision(folder, tmp_path_factory, monkeypatch) -> Path:
    """A hub cache whose newest revision of the model has other weights, as the hub's own library reads it."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")
    cache = tmp_path_factory.mktemp("hub")
    snapshot = cache / f"models--{base.NAME.replace('/', '--')}" / "snapshots" / "0123abcd"
    shutil.copytree(folder, snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    assert base._hub_cache(base.NAME) == snapshot
    return snapshot


@pytest.mark.usefixtures("cached_revision")
def test_the_installed_package_goes_before_another_revision_in_the_hub_cache():
    found = find_base_model()
    assert (found.source, found.sha256) == ("package", WEIGHTS_SHA256)


@pytest.mark.usefixtures("cached_revision")
def test_another_revision_is_refused_where_there_is_nothing_else(monkeypatch):
    monkeypatch.setattr(base, "_package", lambda: None)
    with pytest.raises(ModelError, match="has SHA-256 .*expected 53aa5117.*set encoder.model=FOLDER"):
        find_base_model()


def test_weights_that_change_on_disk_are_another_model(folder):
    before = find_base_model(str(folder)).sha256
    (folder / "model.safetensors").write_bytes(b"weights that changed since")
    assert find_base_model(str(folder)).sha256 != before


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_lacks_a_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{folder}: no {name}; expected a folder with config.json"):
        find_base_model(str(folder))
