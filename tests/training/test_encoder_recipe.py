"""Training the token encoder on the sample corpus: its score, its loss, its resume, and the file that search reads."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from helios.corpus import CorpusStore
from helios.engine import Engine
from helios.evaluation.edges import EdgeId
from helios.evaluation.questions import Question
from helios.models.adapters import apply_adapter
from helios.models.base import find_base_model
from helios.models.bert import load_bert
from helios.models.encoder import MiniLMEncoder
from helios.models.text import passage_text, segment_text
from training.checkpoints import load_last
from training.encoder import EncoderRecipe, EncoderSettings, train_encoder
from training.encoder_lessons import Draw, contrast, edge_text, right_edges
from training.log import read_log
from training.mining import LessonData
from training.reranker import RerankerRecipe, RerankerSettings
from training.reranker_lessons import Candidate, Lesson, load_lessons, mine, save_lessons
from training.settings import TrainSettings
from training.trainer import train
from training.updates import compress, export, prepare

TRAIN = TrainSettings(
    epochs=1, learning_rate=1e-3, warmup=0, schedule="constant", bf16="off", log_steps=1, evaluate_first=False
)  # fmt: skip
SETTINGS = EncoderSettings(
    update="lora", rank=4, max_tokens=48, negatives=2, questions=3, measured=3, k1=6, chunk_tokens=192,
    segment_weight=0.4, data=LessonData(held_out=0.0), train=TRAIN,
)  # fmt: skip


def changed(**values: object) -> EncoderSettings:
    return SETTINGS.model_copy(update=values)


def weights_of(ids: np.ndarray) -> np.ndarray:
    """Question-token weights that any process computes alike."""
    rarity = 1.0 + (ids % 7).astype(np.float32)
    return rarity / rarity.mean()


@pytest.fixture(scope="module")
def lessons(engine: Engine) -> list[Lesson]:
    """A question for some edges of the sample: words of its passage, its row as gold."""
    graph, corpus = engine.graph, engine.corpus
    made = []
    for edge in range(0, graph.edge_count, max(1, graph.edge_count // 12)):
        segment = corpus.segment(int(graph.edge_segments[edge]))
        passage = corpus.passages[int(graph.edge_passages[edge])]
        text = f"Which {segment.header[0]} goes with {' '.join(passage.text.split()[5:14])}?"
        gold = EdgeId(segment.segment_id, passage.passage_id)
        made.append(Question(f"q{edge}", text, (segment.cells[0],), segment.segment_id.table_id, (gold,)))
    return list(mine(lambda _: engine, made, "edge", depth=20))


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def steps(recipe: EncoderRecipe, batch: Sequence[Draw], count: int, rate: float) -> list[float]:
    """Losses of a few steps on one batch."""
    optimizer = torch.optim.AdamW(list(recipe.parameter_groups()[0].parameters), lr=rate)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = recipe.step(tuple(batch))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_trained_score_is_that_of_search(engine: Engine, lessons: list[Lesson]) -> None:
    token_weights = engine.index.tokens.token_weights
    recipe = EncoderRecipe(engine.corpus, lessons, changed(max_tokens=256), token_weights)
    encoder = MiniLMEncoder.load(runtime="torch", adapter="none")
    lesson = lessons[0]
    pairs = [*(candidate.pair for candidate in lesson.candidates[:4]), (0, -1), (-1, 0)]
    question = encoder.encode_question(lesson.question)
    weights = token_weights(question.ids)

    def maxima(text: str) -> np.ndarray:
        (found,) = encoder.encode_documents([text])
        return (question.vectors @ found.vectors.T).max(1)

    expected = []
    for segment, passage in pairs:
        sides = [maxima(segment_text(engine.corpus.segment(segment)).text)] if segment >= 0 else []
        sides += [maxima(passage_text(engine.corpus.passages[passage]).text)] if passage >= 0 else []
        expected.append(float((weights * (np.maximum.reduce(sides) + 0.4 * sides[0])).sum()))
    with torch.no_grad():
        scores = recipe.scores([lesson.question], pairs)[0]
    np.testing.assert_allclose(scores.numpy(), expected, rtol=0.02)  # documents may be encoded in bf16


def test_a_joint_edge_is_one_text(engine: Engine, lessons: list[Lesson]) -> None:
    recipe = EncoderRecipe(engine.corpus, lessons, changed(mode="joint", max_tokens=128), weights_of)
    pair = right_edges(lessons[0])[0]
    encoder = MiniLMEncoder.load(runtime="torch", adapter="none", max_tokens=128)
    question = encoder.encode_question(lessons[0].question)
    (read,) = encoder.encode_documents([edge_text(engine.corpus, pair)])
    expected = float(((question.vectors @ read.vectors.T).max(1) * weights_of(question.ids)).sum())
    with torch.no_grad():
        assert float(recipe.scores([lessons[0].question], [pair])[0, 0]) == pytest.approx(expected, rel=0.02)
    losses = steps(recipe, recipe.batches(0, seed=1)[0][:2], 3, 2e-3)
    assert losses[-1] < losses[0]


@pytest.mark.slow
@pytest.mark.parametrize(("update", "rate"), [("lora", 5e-3), ("full", 1e-4)])
def test_an_overfit_batch_lowers_the_loss(engine: Engine, lessons: list[Lesson], update: str, rate: float) -> None:
    recipe = EncoderRecipe(engine.corpus, lessons, changed(update=update), weights_of, lanes=2)
    batches = recipe.batches(0, seed=1)
    assert batches == recipe.batches(0, seed=1)
    assert batches != recipe.batches(1, seed=1)
    assert sorted(one.lesson for batch in batches for one in batch) == list(range(len(lessons)))
    losses = steps(recipe, batches[0], 5, rate)
    assert losses[-1] < 0.6 * losses[0]


def gradients(recipe: EncoderRecipe) -> list[Tensor]:
    batch = recipe.batches(0, seed=1)[0]
    recipe.step(batch).backward()
    return [parameter.grad for parameter in recipe.adapted if parameter.grad is not None]


def test_gradients_do_not_depend_on_cores_or_memory(engine: Engine, lessons: list[Lesson]) -> None:
    """The same bits from one core, two cores and recomputed chunks; nearly the same from one chunk."""
    alone = gradients(EncoderRecipe(engine.corpus, lessons, SETTINGS, weights_of))
    assert any(bool(gradient.any()) for gradient in alone)
    two = gradients(EncoderRecipe(engine.corpus, lessons, changed(recompute=True), weights_of, lanes=2))
    assert all(torch.equal(one, other) for one, other in zip(alone, two, strict=True))
    whole = gradients(EncoderRecipe(engine.corpus, lessons, changed(chunk_tokens=100_000), weights_of))
    for one, other in zip(alone, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-4)


def test_edges_that_may_be_right_are_no_negatives(engine: Engine) -> None:
    corpus = engine.corpus
    table = corpus.segment_id(0).table_id
    other = next(n for n in range(corpus.segment_count) if corpus.segment_id(n).table_id != table)
    answer = next(word for word in corpus.segment(other).cells if len(word) > 3)

    def lesson(candidates: tuple[Candidate, ...], answers: tuple[str, ...]) -> Lesson:
        return Lesson("q", table, 1, candidates, (), answers)

    gold, wrong = Candidate((0, -1), 2.0, 0, False), Candidate((1, -1), 1.0, -1, False)
    unclear = Candidate((2, -1), 1.0, -1, True)
    asked = [lesson((gold, unclear, wrong), (answer,)), lesson((wrong, gold), ())]
    draws = [Draw(0, (0, -1), ((1, -1),)), Draw(1, (0, -1), ((1, -1), (other, -1), (2, -1)))]
    found = contrast(asked, draws, corpus)
    assert found.edges == ((0, -1), (1, -1), (other, -1), (2, -1))
    assert found.target_B.tolist() == [0, 0]
    assert found.ignored_BE[0].tolist() == [False, False, True, True]  # holds the answer; marked as holding it
    foreign = contrast(asked, [draws[0], Draw(1, (0, -1), ())], corpus)
    assert foreign.ignored_BE[1].tolist() == [False, True]  # no answers are known: another edge of the same table


def test_one_right_edge_for_every_gold_edge() -> None:
    candidates = (Candidate((5, 1), 3.0, 1, True), Candidate((5, 2), 2.0, 1, True), Candidate((7, 3), 1.0, 0, False))
    assert right_edges(Lesson("q", "t", 3, candidates, ((9, -1),))) == ((5, 1), (7, 3), (9, -1))


@pytest.mark.slow
def test_distillation_moves_the_order_towards_the_teacher(
    engine: Engine, lessons: list[Lesson], tmp_path: Path
) -> None:
    teacher = RerankerRecipe(engine.corpus, lessons, RerankerSettings(rank=4, max_tokens=96, data=SETTINGS.data))
    with torch.no_grad():
        teacher.scorer.scale.mul_(-1.0)  # a teacher that turns the order round
    teacher.save(tmp_path / "edge-reranker.safetensors", teacher.export())
    settings = changed(teacher=tmp_path / "edge-reranker.safetensors", teacher_weight=1.0, negatives=5, questions=2)
    recipe = EncoderRecipe(engine.corpus, lessons, settings, weights_of)
    assert recipe.teacher is not None
    batch = recipe.batches(0, seed=1)[0]
    taught = recipe.teacher.logits([(recipe.lessons[one.lesson].question, one.pairs) for one in batch])

    def agreement() -> float:
        with torch.no_grad():
            own = [recipe.scores([recipe.lessons[one.lesson].question], one.pairs)[0] for one in batch]
        pairs = zip(own, taught, strict=True)
        return float(np.mean([np.corrcoef(s.argsort().argsort(), t.argsort().argsort())[0, 1] for s, t in pairs]))

    before = agreement()
    losses = steps(recipe, batch, 6, 5e-3)
    assert losses[-1] < 0.7 * losses[0]
    assert agreement() > before + 0.3


@pytest.mark.slow
def test_search_reads_what_was_trained(
    engine: Engine, lessons: list[Lesson], sample_index: Path, tmp_path: Path
) -> None:
    save_lessons(lessons, tmp_path / "lessons.parquet")
    data = LessonData(index=sample_index, held_out=0.4)
    settings = changed(data=data, lessons=tmp_path / "lessons.parquet", train=TRAIN.model_copy(update={"max_steps": 2}))
    scores = train_encoder(settings, tmp_path / "run")
    adapter = tmp_path / "run" / "token-encoder.safetensors"
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    assert {name: card["scores"][name] for name in scores} == pytest.approx(scores)
    assert "held-out train AR@2" in scores
    recipe = EncoderRecipe(engine.corpus, lessons, settings, weights_of)
    saved = load_last(tmp_path / "run")
    assert saved is not None
    recipe.load_state_dict(saved[1])
    assert_same_vectors(recipe, adapter, tolerance=0.001)
    encoder = MiniLMEncoder.load(adapter=str(adapter))
    assert encoder.fingerprint != MiniLMEncoder.load(adapter="none").fingerprint


def assert_same_vectors(recipe: EncoderRecipe, adapter: Path, *, tolerance: float) -> None:
    """The file, through the encoder of search, gives the unit vectors of the model in memory, not those of the base."""
    loaded = MiniLMEncoder.load(adapter=str(adapter), max_tokens=48)
    text = "Phnom Penh Crown. Founded: 2001 ; Ground: Olympic Stadium"
    question = loaded.encode_question(text)
    with torch.no_grad():
        recipe.bert.eval()
        found = recipe.parallel.encode(recipe.reader.tokenise([text]))
    vectors = found.vectors[0][0][found.kept[0][0]].numpy()
    plain = MiniLMEncoder.load(adapter="none").encode_question(text).vectors
    lost, changed = (np.linalg.norm(found - vectors, axis=1).mean() for found in (question.vectors, plain))
    assert lost < tolerance
    assert changed > 4 * lost


@pytest.mark.slow
def test_a_full_run_is_written_as_low_rank_changes(engine: Engine, lessons: list[Lesson], tmp_path: Path) -> None:
    recipe = EncoderRecipe(engine.corpus, lessons, changed(update="full", rank=48), weights_of)
    recipe.step(recipe.batches(0, seed=1)[0]).backward()
    with torch.no_grad():
        for parameter in recipe.adapted:
            if parameter.grad is not None and bool(parameter.grad.any()):
                parameter -= 0.03 * parameter.norm() / parameter.grad.norm() * parameter.grad
    errors = recipe.save(tmp_path / "a.safetensors")
    base, loaded = load_bert(recipe.base.folder), load_bert(recipe.base.folder)
    apply_adapter(loaded, tmp_path / "a.safetensors")
    squares: dict[str, list[float]] = {"embeddings": [0.0, 0.0], "layers": [0.0, 0.0]}
    trained = zip(recipe.bert.named_parameters(), loaded.parameters(), base.parameters(), strict=True)
    for (name, parameter), read, before in trained:
        part = squares[name.partition(".")[0]]
        part[0] += float((parameter - read).detach().square().sum())
        part[1] += float((parameter - before).detach().square().sum())
    for part_name, (lost, whole) in squares.items():
        assert (lost / whole) ** 0.5 == pytest.approx(errors[part_name], rel=1e-3)
    assert 0.0 < errors["layers"] < 0.5
    assert_same_vectors(recipe, tmp_path / "a.safetensors", tolerance=0.05)


def test_a_full_run_may_leave_the_words_alone(tmp_path: Path) -> None:
    base = find_base_model().folder
    bert = load_bert(base)
    trained = prepare(bert, "full", rank=2, scale=1.0, words=False)
    assert bert.embeddings.word_embeddings.weight not in set(trained)
    assert len(trained) == len(list(bert.parameters())) - 1
    with torch.no_grad():
        bert.layers[0].query.bias += 1.0
    exported = export(bert, "full", base=base, rank=2, scale=1.0)
    assert list(exported.tensors) == ["layers.0.query.bias.delta"]


def test_compression_by_hand() -> None:
    change = torch.diag(torch.tensor([4.0, 3.0]))
    kept = compress({"layers.0.up.weight": change, "layers.0.up.bias": torch.ones(2), "x.weight": 0 * change}, rank=1)
    assert set(kept.tensors) == {"layers.0.up.A", "layers.0.up.B", "layers.0.up.bias.delta"}
    product = kept.tensors["layers.0.up.B"] @ kept.tensors["layers.0.up.A"]
    torch.testing.assert_close(product, torch.diag(torch.tensor([4.0, 0.0])))
    assert kept.errors["layers"] == pytest.approx((9 / (16 + 9 + 2)) ** 0.5)


@pytest.mark.slow
def test_a_killed_run_ends_with_the_bits_of_an_uninterrupted_one(
    lessons: list[Lesson], sample_index: Path, tmp_path: Path
) -> None:
    save_lessons(lessons, tmp_path / "lessons.parquet")
    arguments = (sample_index, tmp_path / "lessons.parquet", tmp_path / "killed", "kill")
    killed = subprocess.run(command(*arguments), check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert load_last(tmp_path / "killed")[0].step == 2  # type: ignore[index]
    with Engine.open(sample_index, threads=1) as engine:
        for folder in ("killed", "whole"):
            recipe = EncoderRecipe(engine.corpus, lessons, SETTINGS, weights_of, lanes=2)
            train(recipe, RUN, tmp_path / folder)
    left, right = load_last(tmp_path / "whole"), load_last(tmp_path / "killed")
    assert left is not None and right is not None
    assert left[0].step == right[0].step == 3
    assert all(torch.equal(left[1][name], right[1][name]) for name in left[1])


@pytest.mark.slow
def test_two_processes_have_the_loss_of_one(
    lessons: list[Lesson], sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches a step, one a process: the same losses to a relative 1e-4. This process is torchrun's first."""
    save_lessons(lessons, tmp_path / "lessons.parquet")
    settings = RUN.model_copy(update=ACCUMULATED)
    with Engine.open(sample_index, threads=1) as engine:
        train(EncoderRecipe(engine.corpus, lessons, SETTINGS, weights_of), settings, tmp_path / "one")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        for name, value in {**world, "RANK": "0"}.items():
            monkeypatch.setenv(name, value)
        arguments = (sample_index, tmp_path / "lessons.parquet", tmp_path / "two", "accumulate")
        with subprocess.Popen(command(*arguments), env={**os.environ, "RANK": "1"}) as other:
            train(EncoderRecipe(engine.corpus, lessons, SETTINGS, weights_of), settings, tmp_path / "two")
            assert other.wait(timeout=120) == 0
    assert losses_of(tmp_path / "two") == pytest.approx(losses_of(tmp_path / "one"), rel=1e-4)
    assert len(losses_of(tmp_path / "two")) == 2


RUN = TRAIN.model_copy(update={"max_steps": 3, "checkpoint_steps": 1})
ACCUMULATED = {"accumulate": 2, "max_steps": 2}


def losses_of(folder: Path) -> list[float]:
    return [value for *_, name, value in read_log(folder / "log.csv") if name == "loss"]


def command(*arguments: object) -> list[str]:
    """Run this file as a script."""
    return [sys.executable, __file__, *map(str, arguments)]


class Killed(EncoderRecipe):
    """Dies in its third step."""

    calls = 0

    def step(self, batch: tuple[Draw, ...]) -> Tensor:
        self.calls += 1
        if self.calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(batch)


def main(index: str, lessons: str, folder: str, how: str) -> None:
    torch.set_num_threads(1)
    with Engine.open(Path(index), threads=1) as engine:
        corpus: CorpusStore = engine.corpus
        kind = Killed if how == "kill" else EncoderRecipe
        recipe = kind(corpus, load_lessons(Path(lessons)), SETTINGS, weights_of, lanes=2 if how == "kill" else 1)
        train(recipe, RUN.model_copy(update={} if how == "kill" else ACCUMULATED), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # torch's own threads sometimes abort a process that ends, after all is written
