"""An ablation as a picture: one measure with its interval, and the latency, a line a variant."""

import io
from importlib.util import find_spec

from helios.errors import HeliosError
from helios.evaluation.ablation.run import Ablation, Row
from helios.evaluation.ablation.variants import FULL, Group
from helios.evaluation.evaluate import CUTOFFS
from helios.extras import installation


def require_matplotlib() -> None:
    """HeliosError that names the extra if there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        raise HeliosError(
            "the ablation's plot needs matplotlib, which is not installed: "
            f"{installation('matplotlib')}, or leave out --out"
        )


def plot_ablation(ablation: Ablation) -> bytes:
    """A PNG: nDCG (AR without gold edges) on the left, the median latency on the right, groups in colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ndcg, recall = f"nDCG@{ablation.depth}", f"AR@{max(k for k in (1, *CUTOFFS) if k <= ablation.depth)}"
    measure = ndcg if ndcg in ablation.rows[0].measures else recall
    rows = [row for row in ablation.rows if measure in row.measures]
    figure = Figure(figsize=(10, 1.2 + 0.32 * max(len(rows), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    for place, row in enumerate(rows):
        colour = _colour(row)
        found = row.measures[measure]
        left.plot([100 * found.low, 100 * found.high], [place, place], color=colour, linewidth=1.5, alpha=0.6)
        left.plot([100 * found.mean], [place], color=colour, marker="o", markersize=5)
        right.barh([place], [row.latency_ms["p50"]], color=colour, height=0.6, alpha=0.8)
        if row.variant.name == FULL:
            left.axvline(100 * found.mean, color=colour, linewidth=0.8, linestyle=":")
    left.set_yticks(range(len(rows)), [row.variant.name for row in rows])
    left.invert_yaxis()
    left.set_xlabel(f"{measure}, % (mean, 95 % interval, {ablation.questions} questions)")
    right.set_xlabel("median latency, ms")
    for panel in (left, right):
        panel.grid(axis="x", linewidth=0.4, alpha=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()


def _colour(row: Row) -> str:
    return "black" if row.variant.group is None else f"C{list(Group).index(row.variant.group)}"
