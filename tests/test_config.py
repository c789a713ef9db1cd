"""Settings: defaults, files, overrides, and errors that name the key."""

import subprocess
import sys
from pathlib import Path

import pytest

from helios.config import Config, known_keys, load_config, parse_override
from helios.errors import ConfigError


def test_defaults_need_no_file():
    config = load_config()
    assert config == Config()
    assert config.search.k == 50
    assert config.encoder.max_tokens == 256


def test_file_then_overrides(tmp_path: Path):
    path = tmp_path / "small.yaml"
    path.write_text("search:\n  k: 20\n  candidates: 300\ntokens:\n", encoding="utf-8")
    config = load_config(path, ["search.k=7", "linking.source=hyperlinks", "tokens.centroids=64"])
    assert (config.search.k, config.search.candidates) == (7, 300)
    assert config.linking.source == "hyperlinks"
    assert config.tokens.centroids == 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search.k=20", ("search.k", 20)),
        ("search.lexical_weight=1e-1", ("search.lexical_weight", "1e-1")),
        ("linking.model=", ("linking.model", None)),
        ("linking.model=null", ("linking.model", None)),
        ("linking.model=a=b", ("linking.model", "a=b")),
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


def test_missing_file_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot read"):
        load_config(tmp_path / "absent.yaml")


def test_every_wrong_value_is_listed():
    with pytest.raises(ConfigError) as caught:
        load_config(None, ["search.k=0", "encoder.max_tokens=1"])
    assert "search.k" in str(caught.value)
    assert "encoder.max_tokens" in str(caught.value)


def test_resolved_settings_round_trip():
    config = load_config(None, ["search.k=9"])
    assert Config.model_validate(config.resolved()) == config
    assert {key.split(".")[0] for key in known_keys()} == set(config.resolved())


def test_select_takes_sections_and_single_settings():
    config = load_config(None, ["tokens.bits=1"])
    assert config.select(["tokens.bits"]) == {"tokens.bits": 1}
    assert config.select(["linking"])["linking"]["source"] == "linker"
    with pytest.raises(KeyError, match="nonsense"):
        config.select(["nonsense"])


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        load_config().search.k = 3  # type: ignore[misc]


def test_importing_settings_is_light():
    code = "import helios.config, sys; assert not {'torch', 'numpy', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("configs/*.yaml")), ids=lambda p: p.name)
def test_shipped_configs_load(path: Path):
    assert load_config(path) != Config()
