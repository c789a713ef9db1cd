"""Questions that stand alone: they say which table they are about.

The train questions of OTT-QA come from people who had the table before them ("What team plays in the second-most
populous city in New England ?"); an open search gets questions that say what they are about ("... in the 2013 Patriot
League men's soccer season ?"). What learns from the former alone learns that titles say little and that the right table
is found half of the time. So questions that lack the title of their table are told it, not always in full.
"""

import logging
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from helios.corpus import CorpusStore
from helios.retrieval.refinement.wording import stems
from training.wording import place_of

log = logging.getLogger(__name__)

LEFT = 0.07
"""Share of the questions that are left as they are."""
DROPPED = 0.15
"""Share of a title's words that are left out."""
IN_FRONT = 0.3
"""Share of the questions that begin with their table."""
_SMALL_WORDS = "the a an of in at on and for to by from s among list"
_SMALL = frozenset(_SMALL_WORDS.split())


def stand_alone(question: str, title: str, section: str, chance: random.Random) -> str:
    """The question with words of its table's title that it lacks; as it is where it lacks none."""
    known = frozenset(stems(question))
    words = place_of(title, section, chance).split()
    kept = [word for word in words if _is_small(word) or (_is_new(word, known) and chance.random() >= DROPPED)]
    while kept and _is_small(kept[-1]):
        kept.pop()
    if not kept or chance.random() < LEFT:
        return question
    told, asked = " ".join(kept), question.rstrip(" ?.")
    if chance.random() < IN_FRONT:
        return f"{told[:1].upper()}{told[1:]} , {asked[:1].lower()}{asked[1:]} ?"
    return f"{asked} {told} ?"


def stand_alone_records(
    records: Iterable[Mapping[str, Any]], corpus: CorpusStore, *, seed: int
) -> Iterator[dict[str, Any]]:
    """Records of a question file with questions that stand alone, under ids of their own.

    Questions without a table, or about one that the corpus lacks, are left out. A question's wording depends on the
    seed and on its id alone.
    """
    left_out = 0
    for record in records:
        number = corpus.tables.find(str(record.get("table")))
        if number is None:
            left_out += 1
            continue
        table, chance = corpus.tables[number], random.Random(f"{seed} {record['id']}")
        text = stand_alone(str(record["question"]), table.title, table.section, chance)
        yield {**record, "id": f"{record['id']}-alone", "question": text}
    if left_out:
        log.warning("%d questions are left out: the corpus has no table of theirs", left_out)


def _is_small(word: str) -> bool:
    return set(stems(word)) <= _SMALL


def _is_new(word: str, known: frozenset[str]) -> bool:
    return not set(stems(word)) <= known
