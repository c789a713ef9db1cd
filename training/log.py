"""The log of a run: `log.csv`, one value a line, and `log.png`, drawn from it."""

import csv
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from helios.index.durable import write_atomically

log = logging.getLogger(__name__)

CSV = "log.csv"
PNG = "log.png"
FIELDS = ("step", "epoch", "seconds", "name", "value")


@dataclass(frozen=True, slots=True)
class LogRow:
    """Values at one moment; `seconds` counts from the start, over all restarts."""

    step: int
    epoch: int
    seconds: float
    values: Mapping[str, float]


class TrainLog:
    """Appends to a folder's log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CSV

    def start(self, *, after_step: int) -> None:
        """Keep the lines up to a step, which a resumed run will not write again; -1 starts anew."""
        kept = [line for line in read_log(self.path) if line[0] <= after_step] if self.path.is_file() else []
        text = ",".join(FIELDS) + "\n" + "".join(_line(*line) for line in kept)
        write_atomically(self.path, text.encode())

    def write(self, row: LogRow) -> None:
        """Append every value of a row."""
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(_line(row.step, row.epoch, row.seconds, name, value) for name, value in row.values.items())

    def plot(self) -> None:
        """Draw `log.png` where matplotlib is installed."""
        if find_spec("matplotlib") is None:
            log.info("matplotlib is not installed: no plot of %s", self.path)
            return
        plot_log(self.path, self.path.with_name(PNG))


def read_log(path: Path) -> list[tuple[int, int, float, str, float]]:
    """(step, epoch, seconds, name, value) of every whole line."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (int(row["step"]), int(row["epoch"]), float(row["seconds"]), row["name"], float(row["value"]))
            for row in csv.DictReader(file)
            if all(row.get(name) for name in FIELDS)
        ]


def plot_log(path: Path, picture: Path) -> None:
    """One panel a name, over steps, side by side in one PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curves: dict[str, tuple[list[int], list[float]]] = {}
    for step, _, _, name, value in read_log(path):
        steps, values = curves.setdefault(name, ([], []))
        steps.append(step)
        values.append(value)
    columns = min(3, max(1, len(curves)))
    rows = max(1, -(-len(curves) // columns))
    figure = Figure(figsize=(4.2 * columns, 2.8 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (name, (steps, values)) in enumerate(curves.items(), start=1):
        panel = figure.add_subplot(rows, columns, place)
        panel.plot(steps, values, marker="o" if len(steps) < 40 else "", markersize=3, linewidth=1.2)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("step", fontsize=8)
        panel.tick_params(labelsize=8)
        panel.grid(visible=True, alpha=0.3)
    figure.savefig(picture, dpi=110)


def _line(step: int, epoch: int, seconds: float, name: str, value: float) -> str:
    return f"{step},{epoch},{seconds:.3f},{name},{value:.8g}\n"
