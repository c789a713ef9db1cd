"""The recipe of augmenters: it learns what helps, leaves out what does not, resumes, and refuses another split."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from helios.augment.context import Context
from helios.augment.encoding import AttributeVectors, PooledTokens, encode_question
from helios.augment.model import load_augmenter, with_row
from helios.errors import ModelError
from helios.evaluation.augment.command import AugmentOptions, evaluate_augment, text_encoder
from helios.evaluation.augment.tasks import SplitBy
from helios.models.encoder import MiniLMEncoder
from training.augment import AugmentSettings, info_nce, train_augment
from training.errors import TrainingError
from training.recipes import load_recipe

THINGS = ["brake", "qubit", "violin", "kettle", "harbour", "pepper", "ladder", "meadow", "magnet", "canoe"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Titles that say nothing, bodies that name the thing of the answer, profiles that name another."""
    file = tmp_path_factory.mktemp("site") / "site.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TABLE posts (id, post_type_id, parent_id, creation_date, title, body, owner_user_id)"
        )
        connection.execute("CREATE TABLE comments (id, post_id, user_id, creation_date, text)")
        connection.execute("CREATE TABLE users (id, about_me)")
        for number in range(40):
            thing, other = THINGS[number % 10], THINGS[(number + 3) % 10]
            day, question = f"2020-{1 + number // 4:02d}-{1 + number % 4:02d}", 10 * (number + 1)
            connection.execute("INSERT INTO users VALUES (?, ?)", (number, f"{other} {other} lover"))
            asked = (question, 1, None, day, "A question", f"my {thing} ails", number)
            reply = (question + 1, 2, question, day, None, f"mend the {thing}", None)
            connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, ?)", [asked, reply])
        connection.commit()
    return file


def settings_of(site: Path, *overrides: str) -> AugmentSettings:
    data = [f"data.tables=[{site}]", "data.by=time", "data.shares=[0.5,0.2,0.3]"]
    return load_recipe(AugmentSettings, Path("training/configs/augment.yaml").absolute(), [*data, *overrides])


def test_a_loss_by_hand():
    scores = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    first = -np.log(np.exp(2) / (np.exp(2) + np.exp(0)))  # the other right one is not beside it
    second = -np.log(np.exp(1) / (np.exp(1) + np.exp(0)))
    expected = ((first + second) / 2 + np.log(3)) / 2
    assert float(info_nce(scores, [[0, 1], [2]])) == pytest.approx(expected, rel=1e-5)


def test_few_parameters_learn_which_columns_help(site: Path, tmp_path: Path):
    scores = train_augment(settings_of(site), tmp_path / "few")
    assert scores["validation Recall@10"] > 0.0
    encoder = text_encoder(None)
    model = load_augmenter(tmp_path / "few", encoder.name)
    weights = model.weights.weights
    assert weights["body"] + weights["row"] > 5 * weights["about_me"]
    assert model.down_DR is not None and model.down_DR.shape[0] == encoder.dimension
    assert (tmp_path / "few" / "README.md").is_file() and (tmp_path / "few" / "log.csv").is_file()
    options = AugmentOptions(site, by=SplitBy.TIME, shares=(0.5, 0.2, 0.3), weights=(tmp_path / "few",))
    report = evaluate_augment(options)
    assert report["trained: few"].measures[0].mean > report["no expansion"].measures[0].mean
    with pytest.raises(ModelError, match="another split"):
        evaluate_augment(AugmentOptions(site, by=SplitBy.TIME, shares=(0.6, 0.2, 0.2), weights=(tmp_path / "few",)))
    with pytest.raises(ModelError, match="another encoder"):
        load_augmenter(tmp_path / "few", "others")


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_bits(site: Path, tmp_path: Path):
    whole = settings_of(site, "train.epochs=3", "batch=8", "map_rank=4")
    train_augment(whole, tmp_path / "whole")

    def stop(row):
        if row.step >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_augment(whole, tmp_path / "stopped", on_log=stop)
    train_augment(whole, tmp_path / "stopped")
    one, two = (load_augmenter(tmp_path / name, text_encoder(None).name) for name in ("whole", "stopped"))
    np.testing.assert_array_equal(one.up_RD, two.up_RD)
    assert one.weights == two.weights


@pytest.mark.slow
def test_the_encoders_learn_too_and_attributes_may_have_their_own(site: Path, tmp_path: Path):
    settings = settings_of(
        site, "update=lora", "attributes=separate", "train.max_steps=2", "train.learning_rate=0.00002", "batch=4",
        "negatives=2", "rank=2", "train.evaluate_first=false", "with_gradients=1", "without_gradients=1",
    )  # fmt: skip
    train_augment(settings, tmp_path / "lora")
    base = PooledTokens(MiniLMEncoder.load(adapter="none"))
    model = load_augmenter(tmp_path / "lora", base.name)
    assert [path.name for path in model.adapters] == ["token-encoder.safetensors", "attribute-encoder.safetensors"]
    trained = [AttributeVectors(PooledTokens(MiniLMEncoder.load(adapter=str(path)))) for path in model.adapters]
    context = Context.from_columns({"body": ["my brake ails"]})
    found = encode_question("A question", context, trained[0], model.weights, trained[1])
    np.testing.assert_allclose(found.parts[0].vector, trained[1].of(["my brake ails"])[0], atol=1e-5)


def test_a_baseline_is_trained_alike(site: Path, tmp_path: Path):
    train_augment(settings_of(site, "expansion=row", "train.epochs=1"), tmp_path / "row")
    model = load_augmenter(tmp_path / "row", text_encoder(None).name)
    assert model.expansion == "row" and not model.weights.weights


def test_the_row_as_one_text_is_what_no_key_leads_to():
    context = Context.from_columns({"body": ["my brake ails"]})
    found = with_row("A question", context)
    assert found.columns[-1].name == "row" and found.columns[-1].texts() == ("A question\nmy brake ails",)
    assert with_row("A question", Context()) == Context()


def test_no_data_is_said(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"set data\.tables"):
        train_augment(AugmentSettings(), tmp_path)
