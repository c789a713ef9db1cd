"""Recipe files: unknown keys and wrong values are named, and every recipe of the package is a valid one."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from helios.config import Section
from helios.errors import ConfigError
from training.cli import app
from training.errors import TrainingError
from training.recipes import RECIPES, ROLES, DataSettings, find_recipe, find_role, load_recipe, recipe_names
from training.settings import TrainSettings


class Toy(Section):
    """A role's settings."""

    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings(epochs=4)
    pool: int = 40


def test_the_file_holds_differences_and_the_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text("pool: 7\ntrain:\n  epochs: 9\n  seed: 3\ndata:\n")
    recipe = load_recipe(Toy, path, ["train.epochs=2", "data.questions=[a.jsonl, b.jsonl]", "data.index=idx"])
    assert (recipe.pool, recipe.train.epochs, recipe.train.seed) == (7, 2, 3)
    assert recipe.data.questions == (Path("a.jsonl"), Path("b.jsonl"))
    assert recipe.data.index == Path("idx")
    assert load_recipe(Toy).train.epochs == 4
    assert load_recipe(Toy, None, ["train.bf16=off"]).train.bf16 == "off"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs: 2", r"toy.yaml: unknown setting 'epochs'; did you mean train.epochs\?"),
        ("train:\n  learning_rat: 1", r"unknown setting 'train.learning_rat'; did you mean train.learning_rate"),
        ("train: 3", "'train' is a section; set one of train.epochs"),
        ("pool: many", "toy.yaml: pool: .*integer.*got 'many'"),
        ("train:\n  epochs: 0", "toy.yaml: train.epochs: .*greater than or equal to 1, got 0"),
        ("- 1", "expected a mapping of settings, got list"),
        ("a: [", "not valid YAML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_recipe(Toy, path)


@pytest.mark.parametrize("override", ["pool", "train.epoch=2", "pool=[", "train=2"])
def test_wrong_overrides_are_named(override: str) -> None:
    with pytest.raises(ConfigError, match="override"):
        load_recipe(Toy, None, [override])


def test_a_missing_recipe_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the recipe"):
        load_recipe(Toy, tmp_path / "absent.yaml")


def test_a_recipe_is_a_file_or_a_name_of_the_package(tmp_path: Path) -> None:
    (own := tmp_path / "ranker").write_text("pool: 7\n")
    assert find_recipe(str(own)) == own
    assert {find_recipe(name).parent for name in recipe_names()} == {RECIPES}
    with pytest.raises(ConfigError, match="configs/encodr.yaml: no such recipe file; did you mean --recipe encoder"):
        find_recipe("configs/encodr.yaml")
    with pytest.raises(ConfigError, match="recipes in the package: aggregation, "):
        find_recipe("xyz")


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(TrainingError, match="unknown role 'chef'; known roles: fused"):
        find_role("chef")


def test_a_role_without_its_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROLES, "reader", ("training.absent", ""))
    result = CliRunner().invoke(app, ["reader", "--out", "x"])
    assert isinstance(result.exception, TrainingError)
    assert "this installation has no module training.absent" in str(result.exception)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_recipes_of_the_repository_are_valid(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    role = next((name for name in ROLES if f"helios train {name} " in first), None)
    assert role, f"{path.name}: the first line must show its command, helios train ROLE --recipe ..."
    assert yaml.safe_load(path.read_text())
    load_recipe(find_role(role).settings, path)


def test_a_part_of_a_section_leaves_the_recipe_s_other_defaults() -> None:
    class Own(Section):
        train: TrainSettings = TrainSettings(epochs=3, best_by="loss", lower_is_better=True)

    found = load_recipe(Own, None, ["train.epochs=5"])
    assert (found.train.epochs, found.train.best_by, found.train.lower_is_better) == (5, "loss", True)
