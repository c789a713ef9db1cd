"""The same number of questions of every paradigm, drawn so that the draw depends on ids and seed alone."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from helios.evaluation.sources.questions import SourceQuestion


def balanced_sample(
    questions: Sequence[SourceQuestion], *, per_paradigm: int, seed: int = 0
) -> tuple[SourceQuestion, ...]:
    """At most `per_paradigm` questions of each paradigm: those with the smallest hashes of seed and id.

    The order of the input does not matter, and a larger sample contains a smaller one. Questions keep their order.
    """
    groups: dict[str, list[SourceQuestion]] = defaultdict(list)
    for question in questions:
        groups[question.paradigm].append(question)
    chosen = {
        question.question_id
        for group in groups.values()
        for question in sorted(group, key=lambda question: _draw(question.question_id, seed))[:per_paradigm]
    }
    return tuple(question for question in questions if question.question_id in chosen)


def _draw(question_id: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{question_id}".encode()).hexdigest()
