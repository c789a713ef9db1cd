"""Lessons for the reader of passages that nobody wrote, in large numbers, from passages and the rows that link to them.

    1907 in "The bridge was opened in 1907 ."  →  when bridge opened ?                          a cloze
    1907 in a text that names the bridge       →  the same date in the bridge's own text        a crossing
    Opened: 1907 in the bridge's row           →  when was Ostby Bridge opened                  a fact

What is asked of a cloze stands in the text in nearly the same words. A crossing and a fact ask in the words of somebody
else, as people do.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence

from helios.index.languages import COMMON
from helios.models.text import plain_text, segment_text, split_sentences
from helios.reading.windows import JOIN
from helios.types import Passage, Segment, SegmentId, Table
from training.table_questions import NAMES

Spans = tuple[tuple[int, int], ...]
Record = dict[str, object]
WORDS = (45, 130)
"""Words of a text that are shown: between these numbers."""
WRONG = 2
"""Texts beside each lesson that do not answer."""
MOST = 4
"""Places where an answer stands in a text; what stands in more says little."""
LEAST_SENTENCE, LONGEST_SENTENCE = 40, 400
DATE = re.compile(
    r"(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"(?: \d{1,2},?)?(?: \d{4})?|\b(?:1[5-9]|20)\d\d\b"
)
BLANKS = (
    (("when",), DATE),
    (("how many",), re.compile(r"(?<![\w.])\d[\d,.]*(?:\s?(?:million|billion|%|per cent|km|m|miles|feet|years|days|"
                               r"seats|people|acres|tonnes|hours|minutes))?(?!\w)")),
    (("who", "which", "what", "where"),
     re.compile(r"(?<!^)\b[A-Z][\w'’.-]+(?:\s+(?:of|the|and|de|van|von)?\s*[A-Z][\w'’.-]+)*")),
    (("what", "why", "how", "where"),
     re.compile(r"\b(?:because|so that|in order to|due to) ((?:[\w’'-]+\s+){1,7}[\w’'-]+)(?=[,.;])")),
)  # fmt: skip
"""Words that ask for what is left out, and what that looks like: the pattern's group where it has one."""
NAME = BLANKS[2][1]
DONE = (
    "born", "founded", "opened", "built", "established", "released", "died", "completed", "launched", "signed",
    "elected", "formed", "closed",
)  # fmt: skip
"""Headers of dates that are said as verbs."""
FACTS = (
    "what is the {header} of {title}", "{title} {header}", "{header} of {title}", "what {header} does {title} have",
    "which {header} is {title}", "{title} : {header} ?", "what was the {header} for {title}",
    "{header} {title} {table}", "tell me the {header} of {title}", "in {table} what is the {header} of {title}",
)  # fmt: skip


def made_lessons(
    tables: Sequence[Table], passages: Mapping[str, Passage], names: Mapping[str, str], chance: random.Random
) -> Iterator[Record]:
    """Lessons of the passages that tables link to: clozes and crossings of each once, facts of each link.

    `names` are the titles of all passages with their ids (`names_of`).
    """
    seen: set[str] = set()
    for table in tables:
        linked = [one for one in dict.fromkeys(link.passage_id for link in table.hyperlinks) if one in passages]
        if len(linked) < 4:
            continue
        texts = {one: plain_text(passages[one]) for one in linked}
        for one in linked:
            if one not in seen:
                seen.add(one)
                yield from clozes(passages[one], texts, chance)
                yield from crossings(passages[one], passages, names, texts, chance)
        yield from facts(table, passages, texts, chance)


def names_of(passages: Mapping[str, Passage]) -> dict[str, str]:
    """Ids of passages by their titles, without what stands in brackets; short ones and those of several left out."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for one, passage in passages.items():
        name = re.sub(r"\s*\([^)]*\)$", "", passage.title)
        if name in found:
            twice.add(name)
        if len(name) >= 5 and name[:1].isupper():
            found[name] = one
    return {name: one for name, one in found.items() if name not in twice}


def clozes(passage: Passage, texts: Mapping[str, str], chance: random.Random) -> Iterator[Record]:
    """One sentence in two, at most three: some of its words ask for what was left out."""
    text = plain_text(passage)
    sentences = [one for one in split_sentences(passage.text) if LEAST_SENTENCE <= len(one) <= LONGEST_SENTENCE]
    for sentence in chance.sample(sentences, min(3, (len(sentences) + 1) // 2)):
        blank = _blank(sentence, chance)
        start = text.find(sentence)
        if blank is None or start < 0:
            continue
        asks, first, last = blank
        answer = sentence[first:last]
        wrong = _without(texts, answer, chance)
        rest = text.replace(sentence, "")
        if not occurrences(rest, answer) and len(rest) > LEAST_SENTENCE + len(passage.title) and chance.random() < 0.5:
            wrong = [*wrong[: WRONG - 1], rest]
        if wrong:
            question = asked(passage.title, sentence[:first], sentence[last:], asks, chance)
            yield _lesson(question, [(text, ((start + first, start + last),))], wrong, chance)


def crossings(
    passage: Passage, passages: Mapping[str, Passage], names: Mapping[str, str], texts: Mapping[str, str],
    chance: random.Random,
) -> Iterator[Record]:  # fmt: skip
    """Sentences that name another passage, and say what that one says too: both answer."""
    own = plain_text(passage)
    for sentence in split_sentences(passage.text):
        if not LEAST_SENTENCE <= len(sentence) <= LONGEST_SENTENCE:
            continue
        for start, end, other in _named(sentence, names):
            title, text = passages[other].title, plain_text(passages[other])
            if title == passage.title:
                continue
            spans = [m.span() for _, what in BLANKS[:3] for m in what.finditer(sentence)]
            spans = [(a, b) for a, b in spans if (b <= start or a >= end) and sentence[a:b] not in title]
            said = [(a, b, found) for a, b in spans if 0 < len(found := occurrences(text, sentence[a:b])) <= MOST]
            if not said:
                continue
            a, b, found = chance.choice(said)
            wrong = _without(texts, sentence[a:b], chance)
            if wrong:
                asks = _asks(sentence[a:b], sentence[:a], chance)
                right = [(text, tuple(found))]
                if chance.random() < 0.3 and 0 < len(here := occurrences(own, sentence[a:b])) <= MOST:
                    right.append((own, tuple(here)))
                subject = title if chance.random() < 0.3 else ""
                yield _lesson(asked(subject, sentence[:a], sentence[b:], asks, chance), right, wrong, chance)
            break


def facts(
    table: Table, passages: Mapping[str, Passage], texts: Mapping[str, str], chance: random.Random
) -> Iterator[Record]:
    """What a row says of a passage that it links to, and the passage says too; at most two a row."""
    given: dict[int, int] = {}
    for link in table.hyperlinks:
        if link.passage_id not in texts or given.get(link.row, 0) >= 2:
            continue
        passage, text = passages[link.passage_id], texts[link.passage_id]
        cells = table.rows[link.row]
        for column in chance.sample(range(len(cells)), len(cells)):
            value, header = cells[column].strip(), table.header[column].strip()
            if column == link.column or not header or not 2 <= len(value) <= 60 or value in passage.title:
                continue
            spans = tuple(occurrences(text, value))
            if not 0 < len(spans) <= MOST:
                continue
            wrong = _without(texts, value, chance)
            if wrong:
                kept = [at for at in range(len(cells)) if at != column]
                row = Segment(
                    SegmentId(table.table_id, link.row), table.title, table.section,
                    tuple(table.header[at] for at in kept), tuple(cells[at] for at in kept),
                )  # fmt: skip
                shown = text if chance.random() < 0.6 else text + JOIN + segment_text(row).text
                question = fact_question(passage.title, header, value, table.title, chance)
                yield _lesson(question, [(shown, spans)], wrong, chance)
                given[link.row] = given.get(link.row, 0) + 1
            break


def fact_question(title: str, header: str, value: str, table: str, chance: random.Random) -> str:
    """Ask for a header's value of a thing, in one of many forms."""
    said = " ".join(header.replace("_", " ").lower().split())
    others = NAMES.get(said.split()[-1])
    if others and chance.random() < 0.5:
        said = chance.choice(others)
    name = re.sub(r"\s*\([^)]*\)$", "", title)
    if said in DONE and DATE.search(value):
        question = f"when was {name} {said}" if said != "died" else f"when did {name} die"
    elif DATE.fullmatch(value) and chance.random() < 0.4:
        question = f"when {said} {name}"
    else:
        question = chance.choice(FACTS).format(header=said, title=name, table=table)
    question = question if chance.random() < 0.5 else question + " ?"
    return question.lower() if chance.random() < 0.6 else question


def asked(title: str, before: str, after: str, asks: str, chance: random.Random) -> str:
    """A sentence around what is asked for as a question: a hurried person's, or with most of its words in order."""
    subject = f"{title} " if title and chance.random() < 0.6 else ""
    kind = chance.random()
    if kind < 0.5:
        words = _kept(subject + before + " " + after, chance, 0.5, 0.35)
        turn = chance.randrange(len(words) + 1) if chance.random() < 0.4 else 0
        words = [*words[turn:], *words[:turn]][:16]
        said = " ".join([asks, *words] if chance.random() < 0.8 else [*words, asks])
    elif kind < 0.8:
        said = " ".join([asks, *_kept(after, chance, 0.15, 0.15), *_kept(subject + before, chance, 0.15, 0.15)][:26])
    else:
        said = " ".join([*_kept(subject + before, chance, 0.1, 0.1), asks, *_kept(after, chance, 0.1, 0.1)][:30])
    said = said if chance.random() < 0.5 else said + " ?"
    return said.lower() if chance.random() < 0.7 else said


def cropped(text: str, spans: Spans, limit: int, chance: random.Random) -> tuple[str, Spans]:
    """At most `limit` words of a text around the first span, and 30 of its row; the spans that are left, moved on."""
    body, _, row = text.partition(JOIN)
    words = [match.span() for match in re.finditer(r"\S+", body)]
    start, end = 0, len(body)
    if len(words) > limit:
        asked_at = spans[0][0] if spans else chance.choice(words)[0]
        at = next((number for number, word in enumerate(words) if word[1] > asked_at), 0)
        first = max(0, min(at - chance.randrange(5, limit - 10), len(words) - limit))
        start, end = words[first][0], words[first + limit - 1][1]
    places = tuple((a - start, b - start) for a, b in spans if a >= start and b <= end)
    return body[start:end] + (JOIN + " ".join(row.split()[:30]) if row else ""), places


def occurrences(text: str, answer: str) -> list[tuple[int, int]]:
    """Where an answer stands in a text as whole words, whatever the case."""
    if not answer.strip():
        return []
    pattern = rf"(?<!\w){re.escape(answer.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def _lesson(question: str, right: Sequence[tuple[str, Spans]], wrong: Sequence[str], chance: random.Random) -> Record:
    limit = chance.randint(*WORDS)
    shown = [cropped(text, spans, limit, chance) for text, spans in right]
    return {
        "question": question,
        "right": [one for one in shown if one[1]],
        "wrong": [cropped(one, (), limit, chance)[0] for one in wrong],
    }


def _blank(sentence: str, chance: random.Random) -> tuple[str, int, int] | None:
    """What asks, and the characters that it asks for."""
    kinds = [(asks, [m.span(m.lastindex or 0) for m in what.finditer(sentence)]) for asks, what in BLANKS]
    kinds = [(asks, spans) for asks, spans in kinds if spans]
    if not kinds:
        return None
    asks, spans = chance.choice(kinds)
    first, last = chance.choice(spans)
    return "when" if DATE.fullmatch(sentence[first:last]) else chance.choice(asks), first, last


def _asks(answer: str, before: str, chance: random.Random) -> str:
    if DATE.fullmatch(answer):
        return "when"
    if answer[:1].isdigit():
        return "how many"
    if before.rstrip().endswith((" in", " at", " near")):
        return chance.choice(("where", "which", "where"))
    return chance.choice(("who", "which", "what"))


def _named(sentence: str, names: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Characters of titles in a sentence with the passage's id, the longest title at each place."""
    for match in NAME.finditer(" " + sentence):
        words = [(m.start() - 1, m.end() - 1) for m in re.finditer(r"\S+", match.group())]
        base = match.start()
        words = [(base + a, base + b) for a, b in words]
        for first in range(len(words)):
            for last in reversed(range(first, min(first + 6, len(words)))):
                start, end = words[first][0], words[last][1]
                if (one := names.get(sentence[start:end])) is not None:
                    yield start, end, one
                    break


def _without(texts: Mapping[str, str], answer: str, chance: random.Random) -> list[str]:
    """Some texts that do not say an answer."""
    some = chance.sample(sorted(texts), min(WRONG + 1, len(texts)))
    return [texts[one] for one in some if not occurrences(texts[one], answer)][:WRONG]


def _kept(text: str, chance: random.Random, common: float, other: float) -> list[str]:
    """The words of a text, each dropped with one of two chances."""
    words = re.findall(r"[\w’'-]+", text)
    return [word for word in words if chance.random() > (common if word.lower() in COMMON["en"] else other)]
