"""Which settings an index fixes and which a search chooses."""

from pathlib import Path

import pytest

from helios.config import Config, known_keys, load_config
from helios.engine import Engine
from helios.errors import ConfigError, IndexFormatError
from helios.index.manifest import read_manifest
from helios.index.settings import BUILT, MOVABLE, RENAMED, WITHOUT_EFFECT, search_settings
from helios.index.snapshot import Snapshot
from indexing.stages import default_stages


@pytest.fixture
def snapshot(sample_index: Path):
    with Snapshot.open(sample_index) as snapshot:
        yield snapshot


def test_the_manifest_records_every_setting(sample_index: Path):
    assert set(read_manifest(sample_index).config) == set(Config.model_fields)


def test_what_stages_read_is_fixed():
    read = {key for stage in default_stages() for key in stage.settings}
    assert all(key in BUILT or key.rpartition(".")[0] in BUILT for key in read)
    of_build = {key for key in known_keys() if key.rpartition(".")[0] in BUILT}
    unread = {key for key in of_build if not read & {key, key.rpartition(".")[0]}}
    assert unread <= {*MOVABLE, *WITHOUT_EFFECT}
    assert {*MOVABLE, *WITHOUT_EFFECT, *RENAMED.values()} <= of_build


def test_the_build_comes_from_the_index_and_the_rest_from_the_defaults(snapshot: Snapshot):
    settings = search_settings(snapshot, load_config())
    assert settings.encoder.runtime == "torch"  # the sample index was built with it
    assert settings.search == Config().search
    assert settings.refinement == Config().refinement


def test_defaults_of_this_version_win_over_those_at_the_time_of_the_build(snapshot: Snapshot):
    recorded = snapshot.manifest.config
    old = recorded | {
        "search": {"k": 3, "deadline_ms": 7}, "rerank": {"backend": "flag"}, "gone": {"since": 1},
        "advanced": {**recorded["advanced"], "search": {"candidates": 7}},
    }  # fmt: skip
    snapshot.manifest = snapshot.manifest.model_copy(update={"config": old})
    settings = search_settings(snapshot, load_config(overrides=["search.k=9"]))
    assert (settings.search.k, settings.search.deadline_ms) == (9, None)
    assert (settings.rerank, settings.advanced.search) == (Config().rerank, Config().advanced.search)


def test_settings_of_an_index_from_before_they_were_renamed(snapshot: Snapshot):
    old = {
        "linking": {"source": "linker", "model": None, "threshold": 0.7, "fuzzy": True, "dense": False},
        "encoder": {"model": None, "adapter": None, "runtime": "auto", "max_tokens": 128, "batch_tokens": 99},
        "tokens": {"bits": 2, "centroids": 25},
        "pipeline": {"link_chunk": 200, "encode_chunk": 2048},
        "search": {"k": 3, "lexical": 0.1},
    }
    snapshot.manifest = snapshot.manifest.model_copy(update={"config": old})
    settings = search_settings(snapshot, load_config())
    assert (settings.tokens.bits, settings.advanced.encoder.centroids) == (2, 25)
    assert (settings.advanced.linking.threshold, settings.advanced.linking.fuzzy) == (0.7, True)
    encoder = settings.advanced.encoder
    assert (encoder.max_tokens, encoder.batch_tokens, encoder.windows) == (128, 99, 1)  # longer texts were cut
    with pytest.raises(
        ConfigError, match=r"advanced\.encoder\.windows=2: .* was built with advanced\.encoder\.windows=1"
    ):
        search_settings(snapshot, load_config(overrides=["advanced.encoder.windows=2"]))


@pytest.mark.parametrize(
    ("old", "name"),
    [({"linking": {"source": "linker", "magic": 1}}, "linking.magic"), ({"tokens": {"bits": 3}}, "tokens.bits")],
)
def test_a_setting_of_the_build_that_this_version_does_not_know(snapshot: Snapshot, old: dict, name: str):
    snapshot.manifest = snapshot.manifest.model_copy(update={"config": old, "code_version": "9.9"})
    with pytest.raises(IndexFormatError, match=rf"built by HELIOS 9\.9 with a setting .* \({name}\)"):
        search_settings(snapshot, load_config())


@pytest.mark.parametrize(
    "override",
    [
        "tokens.bits=2",
        "linking.source=none",
        "advanced.encoder.max_tokens=64",
        "advanced.encoder.windows=2",
        "advanced.linking.fuzzy=true",
        "advanced.encoder.centroids=5",
    ],  # fmt: skip
)
def test_a_setting_of_the_build_cannot_be_changed(snapshot: Snapshot, override: str):
    with pytest.raises(ConfigError) as caught:
        search_settings(snapshot, load_config(overrides=[override]))
    key = override.partition("=")[0]
    for part in (override, f"was built with {key}=", "its files depend on it", "helios index build"):
        assert part in str(caught.value)


def test_naming_what_it_was_built_with_is_allowed(snapshot: Snapshot):
    overrides = ["tokens.bits=1", "linking.source=linker", "advanced.linking.model=null", "advanced.linking.chunk=7"]
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


def test_an_encoder_that_only_the_index_names_is_not_fetched(snapshot: Snapshot):
    recorded = snapshot.manifest.config
    config = recorded | {"encoder": {**recorded["encoder"], "model": "somebody/a-model"}}
    snapshot.manifest = snapshot.manifest.model_copy(update={"config": config})
    with pytest.raises(ConfigError, match=r"encoder\.model=somebody/a-model.*does not download what an index names"):
        search_settings(snapshot, load_config())
    asked = load_config(overrides=["encoder.model=somebody/a-model"])
    assert search_settings(snapshot, asked).encoder.model == "somebody/a-model"
