"""Instruction data for the language model of star-based refinement (HELIOS B.4): what it should have replied.

The prompts are those of helios.retrieval.refinement; the replies follow from the gold edges of train questions,
where the paper asks a large model. Three tasks: whether a question aggregates and which of several tables are about it,
which rows an aggregation picks, which rows and passages of several stars help. One JSON object a line, with chat
messages:

    {"task": "verification", "question_id": "...", "table_id": "...", "messages": [{"role": "system", ...}, ...]}
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helios.index.durable import write_atomically
from helios.index.reader import Corpus
from helios.llm import Message, Request
from helios.retrieval.refinement import llm_prompts as prompts
from helios.types import Table
from training.errors import TrainingError
from training.examples import ABSENT, Example, Pair
from training.wording import extreme_rows

COMPARES = re.compile(
    r"\b(?:most|least|fewest|last|latest|earliest|highest|lowest|largest|smallest|biggest|longest|shortest|oldest|"
    r"youngest|tallest|heaviest|fastest|newest|greatest|best|worst|first|second|third|fourth|fifth|\d+(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
"""Words without which a question is taken not to aggregate."""
MOST_ROWS = 3
"""A question with more gold rows than this does not say which of them its aggregation picks."""
TABLE_TOKENS = 2400
STAR_TOKENS = 900
REPLY_TOKENS = 64
MOST_TABLES = 8


@dataclass(frozen=True, slots=True)
class Instruction:
    """A conversation that ends with the wanted reply."""

    task: str
    question_id: str
    table_id: str
    messages: tuple[Message, ...]

    def record(self) -> dict[str, Any]:
        """The JSON record."""
        return asdict(self)


def instructions(
    examples: Iterable[Example], corpus: Corpus, *, stars: int = 4, seed: int = 13
) -> Iterator[Instruction]:
    """Conversations for every example: detection, aggregation where it is one, verification of up to `stars` stars.

    A question that compares, but whose gold row is no extreme of a column, is left out of detection: it may or may
    not aggregate.
    """
    for example in examples:
        chance = random.Random(f"{seed} {example.question_id}")
        found = corpus.tables.find(example.table_id)
        if found is not None:
            table, rows = corpus.tables[found], _gold_rows(example, corpus, found)
            label = _aggregates(example.question, table, rows)
            if label is not None:
                yield _detection(example, corpus, found, label, chance)
            if label:
                yield from _aggregation(example, table, rows)
        yield from _verifications(example, corpus, stars, chance)


def _gold_rows(example: Example, corpus: Corpus, table: int) -> list[int]:
    first, last = int(corpus.segment_offsets[table]), int(corpus.segment_offsets[table + 1])
    return sorted({segment - first for segment, _ in example.positives if first <= segment < last})


def _aggregates(question: str, table: Table, rows: Sequence[int]) -> bool | None:
    """Whether a question aggregates; None where that is not known."""
    if not COMPARES.search(question):
        return False
    if not 0 < len(rows) <= MOST_ROWS:
        return None
    picked: set[int] = set()
    for column in range(len(table.header)):
        picked |= extreme_rows(table.header[column], [cells[column] for cells in table.rows])
    return True if picked & set(rows) else None


def _detection(example: Example, corpus: Corpus, gold: int, label: bool, chance: random.Random) -> Instruction:
    """The gold table among those of the best wrong rows."""
    wrong = (corpus.table_of(segment) for segment, _ in example.negatives if segment != ABSENT)
    tables = list(dict.fromkeys((gold, *wrong)))[:MOST_TABLES]
    chance.shuffle(tables)
    request = prompts.survey(example.question, [corpus.tables[table] for table in tables], max_tokens=REPLY_TOKENS)
    return _instruction("detection", example, request, {"aggregation": label, "tables": [tables.index(gold) + 1]})


def _aggregation(example: Example, table: Table, rows: Sequence[int]) -> Iterator[Instruction]:
    shown = prompts.show_table(table, example.question, tokens=TABLE_TOKENS, first=rows)
    numbers = [shown.rows.index(row) + 1 for row in rows if row in shown.rows]
    if numbers:
        request = prompts.aggregate(example.question, shown.text, count=len(shown.rows), max_tokens=REPLY_TOKENS)
        yield _instruction("aggregation", example, request, {"numbers": numbers})


def _verifications(example: Example, corpus: Corpus, stars: int, chance: random.Random) -> Iterator[Instruction]:
    """One conversation over the gold stars and the best wrong ones, in any order, if it shows a gold pair."""
    gold = {pair for pair in example.positives if ABSENT not in pair}
    spokes: dict[int, list[Pair]] = {}
    for pair in (*example.positives, *example.negatives):
        if ABSENT not in pair and pair not in spokes.setdefault(pair[0], []):
            spokes[pair[0]].append(pair)
    chosen = list(spokes)[:stars]
    chance.shuffle(chosen)
    linked = {segment: [corpus.passages[passage] for _, passage in spokes[segment]] for segment in chosen}
    texts = [(corpus.segment(segment), linked[segment]) for segment in chosen]
    shown = prompts.show_stars(texts, example.question, tokens=STAR_TOKENS)
    helping = {corpus.passages[passage].passage_id for _, passage in gold}
    rows = [place for place, segment in enumerate(chosen[: shown.rows], start=1) if segment in {s for s, _ in gold}]
    pages = [shown.rows + n for n, ids in enumerate(shown.passages, start=1) if helping.intersection(ids)]
    if rows and pages:
        count = shown.rows + len(shown.passages)
        request = prompts.verify(example.question, shown.text, count=count, max_tokens=REPLY_TOKENS)
        reply = {"numbers": [*rows, *pages], "enough": True}
        yield _instruction("verification", example, request, reply)


def _instruction(task: str, example: Example, request: Request[Any], reply: dict[str, Any]) -> Instruction:
    text = json.dumps(reply)
    read = request.read(text)
    if isinstance(read, str):
        raise TrainingError(f"question {example.question_id}: the reply {text} does not fit its own schema: {read}")
    return Instruction(task, example.question_id, example.table_id, (*request.messages, Message("assistant", text)))


def write_instructions(lessons: Iterable[Instruction], path: Path) -> dict[str, int]:
    """Write a JSON-lines file; returns counts by task."""
    tasks: Counter[str] = Counter()
    lines = []
    for lesson in lessons:
        tasks[lesson.task] += 1
        lines.append(json.dumps(lesson.record(), ensure_ascii=False) + "\n")
    write_atomically(path, "".join(lines).encode())
    return dict(sorted(tasks.items()))


def read_instructions(path: Path) -> list[Instruction]:
    """The conversations of a file; TrainingError names the line that is none."""
    lessons = []
    try:
        with path.open(encoding="utf-8") as file:
            for line, text in enumerate(file, start=1):
                lessons.append(_read_line(path, line, text))
    except OSError as error:
        raise TrainingError(f"{path}: cannot read instructions ({error.strerror})") from None
    if not lessons:
        raise TrainingError(f"{path}: holds no instructions")
    return lessons


def _read_line(path: Path, line: int, text: str) -> Instruction:
    try:
        record = json.loads(text)
        messages = tuple(Message(message["role"], message["content"]) for message in record["messages"])
        lesson = Instruction(record["task"], record["question_id"], record["table_id"], messages)
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path}:{line}: not an instruction ({error!r})") from None
    if len(messages) < 2 or messages[-1].role != "assistant":
        raise TrainingError(f"{path}:{line}: the last message must be the assistant's")
    return lesson
