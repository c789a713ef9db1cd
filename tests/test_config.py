"""Settings: defaults, files, overrides, and errors that name the key."""

import subprocess
import sys
from pathlib import Path

import pytest

from helios.config import GONE, RENAMED, RERANK_BACKENDS, Config, known_keys, load_config, parse_override
from helios.errors import ConfigError


def test_defaults_need_no_file():
    config = load_config()
    assert config == Config()
    assert config.search.k == 50
    assert config.advanced.encoder.max_tokens == 256


def test_file_then_overrides(tmp_path: Path):
    path = tmp_path / "small.yaml"
    text = "search:\n  k: 20\n  deadline_ms: 300\ntokens:\nadvanced:\n  search: {candidates: 40}\n  llm:\n"
    path.write_text(text, encoding="utf-8")
    config = load_config(path, ["search.k=7", "linking.source=hyperlinks", "advanced.encoder.centroids=64"])
    assert (config.search.k, config.search.deadline_ms, config.advanced.search.candidates) == (7, 300, 40)
    assert config.linking.source == "hyperlinks"
    assert config.advanced.encoder.centroids == 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search.k=20", ("search.k", 20)),
        ("reading.least=1e-1", ("reading.least", "1e-1")),
        ("rerank.model=", ("rerank.model", None)),
        ("rerank.model=null", ("rerank.model", None)),
        ("rerank.model=a=b", ("rerank.model", "a=b")),
    ],
)
def test_override_values_are_yaml(text, expected):
    assert parse_override(text) == expected
    load_config(None, [text])


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("serch.k=3", ["serch.k", "search.k"]),
        ("search.kk=3", ["search.kk", "search.k"]),
        ("k=3", ["'k'", "search.k"]),
        ("search=3", ["section", "search.k"]),
        ("search.k.deep=3", ["search.k.deep"]),
        ("search.k", ["expected section.key=value"]),
        ("=3", ["expected section.key=value"]),
        ("search.k=-1", ["search.k", "-1", "override"]),
        ("search.k=many", ["search.k", "many"]),
        ("tokens.bits=3", ["tokens.bits", "3", "1 or 2"]),
        ("linking.source=gold", ["linking.source", "hyperlinks", "gold"]),
        ("search.k={a: 1}", ["one setting per override"]),
        ("search.k=[", ["not valid YAML"]),
        ("advanced.search.candidate=3", ["did you mean advanced.search.candidates"]),
        ("advanced.search=3", ["section", "advanced.search.candidates"]),
        ("candidates=3", ["did you mean advanced.search.candidates"]),
    ],
)
def test_wrong_overrides_name_the_key(override, parts):
    with pytest.raises(ConfigError) as caught:
        load_config(None, [override])
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"search:\n  kk: 1\n", "search.kk"),
        (b"serch:\n  k: 1\n", "serch"),
        (b"- 1\n", "mapping"),
        (b"search: 5\n", "search.k"),
        (b"search:\n  k: [\n", "line"),
        (b"search:\n  k: lots\n", "search.k"),
        (b"advanced: 5\n", "advanced.linking.model"),
        (b"advanced:\n  search:\n    k: 5\n", "did you mean search.k"),
        (b"pipeline:\n  link_chunk: 50\n", "'pipeline.link_chunk' is now called 'advanced.linking.chunk'"),
        (b"spread:\n  row: 1.0\n", "'spread.row' is no setting any more"),
        (b"\xff\xfe\x00", "not valid YAML"),
    ],
)
def test_wrong_files_name_file_and_key(tmp_path: Path, content: bytes, part: str):
    path = tmp_path / "wrong.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert part in str(caught.value)
    assert "wrong.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [*RENAMED.items(), ("search.candidates", "advanced.search.candidates"), ("llm.cache", "advanced.llm.cache")],
)
def test_an_old_name_is_answered_with_the_new_one(old, new):
    with pytest.raises(ConfigError, match=f"{old!r} is now called {new!r}"):
        load_config(None, [f"{old}=1"])


def test_old_names_are_no_settings_and_new_ones_are():
    keys = set(known_keys())
    assert not keys & {*RENAMED, *GONE}
    assert keys >= set(RENAMED.values())


def test_what_is_no_setting_any_more_says_why():
    with pytest.raises(ConfigError, match="no setting any more: .* whose folder advanced.search.fused names"):
        load_config(None, ["search.bm25_k1=1.2"])


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["rerank.backend=none", "rerank.model=mine"], "rerank.backend=none ignores rerank.model"),
        (["rerank.backend=none", "rerank.edges=20"], "rerank.backend=none ignores"),
        (["advanced.rerank.weight=0.5"], "is for embedded, .*; rerank.backend=late-interaction ignores it"),
        (["rerank.backend=embedded", "advanced.rerank.cache_mb=8"], "rerank.backend=embedded ignores it"),
        (["rerank.backend=flag", "advanced.rerank.layer=8"], "is for flag-layerwise"),
        (["rerank.backend=none", "advanced.rerank.nodes=5"], "rerank.backend=none ignores it"),
    ],
)
def test_a_setting_that_the_backend_ignores_is_an_error(overrides, words):
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(None, overrides)
    assert str(caught.value).startswith("override ")
    assert load_config(None, overrides[:-1]) is not None


def test_every_setting_of_rerankers_has_its_backends():
    names = {key.rpartition(".")[2] for key in known_keys() if key.startswith("advanced.rerank.")}
    assert names == set(RERANK_BACKENDS)


def test_missing_file_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot read"):
        load_config(tmp_path / "absent.yaml")


def test_every_wrong_value_is_listed():
    with pytest.raises(ConfigError) as caught:
        load_config(None, ["search.k=0", "advanced.encoder.max_tokens=1"])
    assert "search.k" in str(caught.value)
    assert "advanced.encoder.max_tokens" in str(caught.value)


@pytest.mark.parametrize("backend", ["none", "late-interaction", "embedded", "flag-layerwise"])
def test_resolved_settings_round_trip(backend):
    config = load_config(None, ["search.k=9", f"rerank.backend={backend}"])
    assert Config.model_validate(config.resolved()) == config
    assert {key.split(".")[0] for key in known_keys()} == set(config.resolved())


def test_select_takes_sections_and_single_settings():
    config = load_config(None, ["tokens.bits=1"])
    assert config.select(["tokens.bits"]) == {"tokens.bits": 1}
    assert config.select(["linking"])["linking"] == {"source": "linker"}
    assert config.select(["advanced.search.rank_depth"]) == {"advanced.search.rank_depth": 100}
    with pytest.raises(KeyError, match="nonsense"):
        config.select(["nonsense"])


def test_changed_settings_keep_the_others():
    config = load_config(None, ["search.k=9", "rerank.edges=20"])
    changed = config.changed(["advanced.search.spread=0", "search.k=7"])
    assert (changed.search.k, changed.rerank.edges, changed.advanced.search.spread) == (7, 20, 0)
    assert config.search.k == 9
    for wrong, words in (("search.k=0", "override 'search.k=0': search.k"), ("rerank.backend=none", "ignores")):
        with pytest.raises(ConfigError, match=words):
            config.changed([wrong])


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        load_config().search.k = 3  # type: ignore[misc]


def test_importing_settings_is_light():
    code = "import helios.config, sys; assert not {'torch', 'numpy', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("configs/*.yaml")), ids=lambda p: p.name)
def test_shipped_configs_load(path: Path):
    assert load_config(path) != Config()


def test_a_file_of_settings_may_be_named_by_a_text(tmp_path):
    (tmp_path / "mine.yaml").write_text("search:\n  k: 7\n")
    assert load_config(str(tmp_path / "mine.yaml")).search.k == 7
