"""The loop on a small network: resume after a kill, accumulation, several processes, best model, log."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from training.checkpoints import load_best, load_last
from training.errors import TrainingError
from training.log import read_log
from training.settings import TrainSettings
from training.trainer import ParameterGroup, train

SETTINGS = TrainSettings(epochs=3, learning_rate=0.05, warmup=0.2, bf16="off", log_steps=2, checkpoint_steps=2)


class Curve:
    """Learns a sine with dropout: batches are lists of example numbers, `kill_at` ends the process in a step."""

    def __init__(self, *, batch: int = 4, examples: int = 24, dropout: float = 0.3, kill_at: tuple[str, int] = ("", 0)):
        torch.manual_seed(5)
        self.model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 1))
        self.x = torch.linspace(-2, 2, examples)[:, None]
        self.batch, self.kill_at, self.calls = batch, kill_at, {"step": 0, "state": 0, "evaluate": 0}

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        return [ParameterGroup(list(self.model[0].parameters()), 0.5), ParameterGroup(list(self.model[3].parameters()))]

    def batches(self, epoch: int, *, seed: int) -> Sequence[list[int]]:
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(seed + epoch)).tolist()
        return [order[start : start + self.batch] for start in range(0, len(order), self.batch)]

    def size(self, batch: list[int]) -> int:
        return len(batch)

    def step(self, batch: list[int]) -> Tensor:
        self._die("step")
        self.model.train()
        x = self.x[batch]
        return (self.model(x) - torch.sin(2 * x)).square().mean()

    def evaluate(self) -> Mapping[str, float]:
        self._die("evaluate")
        self.model.eval()
        error = float((self.model(self.x).detach() - torch.sin(2 * self.x)).square().mean())
        return {"fit": -error, "error": error}

    def state_dict(self) -> Mapping[str, Any]:
        self._die("state")
        return self.model.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        self.model.load_state_dict(state)

    def _die(self, where: str) -> None:
        self.calls[where] += 1
        if self.kill_at == (where, self.calls[where]):
            os.kill(os.getpid(), signal.SIGKILL)


def weights(recipe: Curve) -> list[Tensor]:
    return [tensor.clone() for tensor in recipe.model.state_dict().values()]


def assert_same(left: list[Tensor], right: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def run_here(folder: Path, *arguments: str, processes: int = 1) -> None:
    """Run this file as a script in a process of its own, or under torchrun."""
    alone = [sys.executable, __file__]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [*(alone if processes == 1 else [*torchrun, __file__]), str(folder), *arguments]
    subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, timeout=900)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
def test_a_killed_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = Curve()
    train(whole, SETTINGS, tmp_path / "whole")
    run_here(tmp_path / "killed", "step:1", "state:2", "step:6", "state:4", "evaluate:1")
    resumed = Curve()
    train(resumed, SETTINGS, tmp_path / "killed")
    assert_same(weights(whole), weights(resumed))
    left, right = load_last(tmp_path / "whole"), load_last(tmp_path / "killed")
    assert left is not None and right is not None
    left[0].seconds = right[0].seconds = 0.0
    assert left[0] == right[0]
    assert_same(list(load_best(tmp_path / "whole")[1].values()), list(load_best(tmp_path / "killed")[1].values()))
    assert _without_seconds(tmp_path / "whole") == _without_seconds(tmp_path / "killed")


def _without_seconds(folder: Path) -> list[tuple[Any, ...]]:
    return [(step, epoch, name, value) for step, epoch, _, name, value in read_log(folder / "log.csv")]


def test_accumulation_equals_one_large_batch(tmp_path: Path) -> None:
    large, small = Curve(batch=10, dropout=0.0), Curve(batch=5, dropout=0.0)
    settings = SETTINGS.model_copy(update={"epochs": 2})
    train(large, settings, tmp_path / "large")
    train(small, settings.model_copy(update={"accumulate": 2}), tmp_path / "small")
    for one, other in zip(weights(large), weights(small), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"accumulate": 2})
    alone = Curve()
    result = train(alone, settings, tmp_path / "alone")
    run_here(tmp_path / "shared", "accumulate=2", processes=2)
    saved = load_last(tmp_path / "shared")
    assert saved is not None
    assert saved[0].step == result.steps
    for one, other in zip(weights(alone), saved[1].values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_best_model_is_kept_apart_and_patience_ends_the_run(tmp_path: Path) -> None:
    recipe = Curve(dropout=0.0)
    settings = TrainSettings(
        epochs=60, learning_rate=0.5, clip=None, warmup=0, bf16="off", patience=3, best_by="error", lower_is_better=True
    )
    result = train(recipe, settings, tmp_path)
    assert result.steps < 60 * 6
    progress, state = load_best(tmp_path)
    assert progress.step == result.best_step
    assert progress.scores["error"] == result.best_score
    assert min(_values(tmp_path, "error")) == pytest.approx(result.best_score, rel=1e-6)
    recipe.load_state_dict(state)
    assert recipe.evaluate()["error"] == pytest.approx(result.best_score)


def _values(folder: Path, wanted: str) -> list[float]:
    return [value for *_, name, value in read_log(folder / "log.csv") if name == wanted]


def test_the_newest_weights_are_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"epochs": 4, "learning_rate": 20.0, "clip": None})
    best, last = (train(Curve(), settings.model_copy(update={"best_by": by}), tmp_path / by) for by in ("fit", "last"))
    assert best.best_step < last.best_step == last.steps
    _, weights = load_best(tmp_path / "last")
    saved = load_last(tmp_path / "last")
    assert saved is not None
    assert all(torch.equal(weights[name], newest) for name, newest in saved[1].items())


def test_training_lowers_the_loss_and_draws_the_log(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = []
    result = train(Curve(dropout=0.0), SETTINGS.model_copy(update={"epochs": 20}), tmp_path, on_log=rows.append)
    assert result.scores["error"] < 0.1
    assert result.best is not None and result.best.is_file()
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")
    names = {name for row in rows for name in row.values}
    assert names == {"loss", "learning_rate", "fit", "error"}
    assert rows[0].step == 0
    assert rows[-1].step == result.steps == 120


def test_max_steps_ends_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    result = train(Curve(), SETTINGS.model_copy(update={"max_steps": 8}), tmp_path)
    assert result.steps == 8
    again = train(Curve(), SETTINGS.model_copy(update={"max_steps": 8}), tmp_path)
    assert again.steps == 8 and again.scores == result.scores


def test_mixed_precision_runs_where_it_is_asked_for(tmp_path: Path) -> None:
    recipe = Curve(dropout=0.0)
    seen = []
    recipe.model[3].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    train(recipe, SETTINGS.model_copy(update={"bf16": "on", "epochs": 1, "evaluate_first": False}), tmp_path)
    assert seen[0] == torch.bfloat16
    assert all(tensor.dtype == torch.float32 for tensor in weights(recipe))


def test_another_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    train(Curve(), SETTINGS, tmp_path, description={"data": {"questions": "a1"}})
    with pytest.raises(TrainingError, match="another settings.learning_rate"):
        train(
            Curve(),
            SETTINGS.model_copy(update={"learning_rate": 0.1}),
            tmp_path,
            description={"data": {"questions": "a1"}},
        )
    with pytest.raises(TrainingError, match="another data.questions"):
        train(Curve(), SETTINGS, tmp_path, description={"data": {"questions": "b2"}})


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path) -> None:
    recipe = Curve()
    recipe.x[7] = float("nan")
    with pytest.raises(TrainingError, match="epoch 0, batches . to .: loss nan"):
        train(recipe, SETTINGS, tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    train(Curve(), SETTINGS, tmp_path)
    (tmp_path / "last.pt").write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(TrainingError, match=r"last\.pt: not a readable checkpoint"):
        train(Curve(), SETTINGS, tmp_path)


def test_wrong_choices_are_explained(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="best_by=speed: the recipe measures only fit, error"):
        train(Curve(), SETTINGS.model_copy(update={"best_by": "speed"}), tmp_path / "a")
    with pytest.raises(TrainingError, match="has no batches"):
        train(Curve(examples=0), SETTINGS.model_copy(update={"evaluate_first": False}), tmp_path / "b")


def main(folder: str, *arguments: str) -> None:
    """Train with a setting such as accumulate=2, or in one child after another that dies at a place like step:6."""
    torch.set_num_threads(1)
    for argument in arguments:
        if "=" in argument:
            name, value = argument.split("=")
            train(Curve(), SETTINGS.model_copy(update={name: int(value)}), Path(folder))
        elif child := os.fork():
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, argument
        else:
            where, count = argument.split(":")
            train(Curve(kill_at=(where, int(count))), SETTINGS, Path(folder))
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # torch's own threads sometimes abort a process that ends, after all is written
