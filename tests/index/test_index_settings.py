"""Which settings an index fixes and which a search chooses."""

from pathlib import Path

import pytest

from helios.config import Config, load_config
from helios.engine import Engine
from helios.errors import ConfigError
from helios.index.manifest import read_manifest
from helios.index.settings import BUILD_SECTIONS, MOVABLE, search_settings
from helios.index.snapshot import Snapshot
from indexing.stages import default_stages


@pytest.fixture
def snapshot(sample_index: Path):
    with Snapshot.open(sample_index) as snapshot:
        yield snapshot


def test_the_manifest_records_every_setting(sample_index: Path):
    assert set(read_manifest(sample_index).config) == set(Config.model_fields)


def test_what_stages_read_is_fixed():
    sections = {key.partition(".")[0] for stage in default_stages() for key in stage.settings}
    assert sections - {"pipeline"} <= set(BUILD_SECTIONS)
    assert all(key.partition(".")[0] in BUILD_SECTIONS for key in MOVABLE)


def test_the_build_comes_from_the_index_and_the_rest_from_the_defaults(snapshot: Snapshot):
    settings = search_settings(snapshot, load_config())
    assert settings.encoder.runtime == "torch"  # the sample index was built with it
    assert settings.search == Config().search
    assert settings.refinement == Config().refinement


def test_defaults_of_this_version_win_over_those_at_the_time_of_the_build(snapshot: Snapshot):
    recorded = snapshot.manifest.config
    old = recorded | {"search": {"k": 3, "candidates": 7}, "rerank": {"backend": "flag"}, "gone": {"since": 1}}
    manifest = snapshot.manifest.model_copy(update={"config": old})
    snapshot.manifest = manifest
    settings = search_settings(snapshot, load_config(overrides=["search.k=9"]))
    assert (settings.search.k, settings.search.candidates) == (9, Config().search.candidates)
    assert settings.rerank == Config().rerank


@pytest.mark.parametrize(
    "override",
    ["tokens.bits=2", "linking.source=none", "encoder.max_tokens=64", "linking.fuzzy=true", "tokens.centroids=5"],
)
def test_a_setting_of_the_build_cannot_be_changed(snapshot: Snapshot, override: str):
    with pytest.raises(ConfigError) as caught:
        search_settings(snapshot, load_config(overrides=[override]))
    key = override.partition("=")[0]
    for part in (override, f"was built with {key}=", "its files depend on it", "helios index build"):
        assert part in str(caught.value)


def test_naming_what_it_was_built_with_is_allowed(snapshot: Snapshot):
    overrides = ["tokens.bits=1", "linking.source=linker", "linking.model=null", "pipeline.link_chunk=7"]
    assert search_settings(snapshot, load_config(overrides=overrides)).tokens.bits == 1


def test_a_model_may_have_moved(snapshot: Snapshot):
    settings = search_settings(snapshot, load_config(overrides=["encoder.model=/elsewhere", "encoder.runtime=auto"]))
    assert (settings.encoder.model, settings.encoder.runtime) == ("/elsewhere", "auto")


def test_a_refusal_lets_go_of_the_index(sample_index: Path):
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir())) if open_files.exists() else 0
    with pytest.raises(ConfigError):
        Engine.open(sample_index, overrides=["tokens.bits=2"])
    assert before == (len(list(open_files.iterdir())) if open_files.exists() else 0)
