"""Lessons for the reader of passages (`training.passage_reader`), one JSON object a line.

    python -m training.passage_lessons written training/texts/a training/texts/b --out written.jsonl
    python -m training.passage_lessons ottqa CORPUS train.jsonl.gz --out ottqa.jsonl --clozes 4500

`written` reads folders of documents with questions whose answer's words and sentence are known. `ottqa` reads
questions over tables and passages, and makes clozes of sentences of the passages that their tables link to: some of a
sentence's words are the question, a date, number, name or phrase that was left out is the answer.

    {"question": "…", "right": [["a text that answers", [[12, 22]]]], "wrong": ["a text that does not"]}
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from helios.corpus import CorpusStore, read_corpus
from helios.evaluation.questions import Question, read_questions
from helios.index.languages import COMMON
from helios.models.text import passage_text, segment_text
from helios.reading.windows import JOIN
from helios.types import Passage, Segment, SegmentId, Table

Spans = tuple[tuple[int, int], ...]
Record = dict[str, object]
WRONG = 5
"""Passages of other files beside a written question, those that share most words with it."""
LINKED = 6
"""Passages of the same table that do not answer a question."""
WORDS = {"cloze": 45, "question": 70}
"""Words of a text around what answers, at most."""
SEED = 7
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_BLANKS = (
    (("when",), re.compile(r"(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|"
                           r"November|December)(?: \d{1,2},?)?(?: \d{4})?|\b(?:1[5-9]|20)\d\d\b")),
    (("how many",), re.compile(r"(?<![\w.])\d[\d,.]*(?:\s?(?:million|billion|%|per cent|km|m|miles|feet|years|days|"
                               r"seats|people|acres|tonnes|hours|minutes))?(?!\w)")),
    (("who", "which", "what", "where"),
     re.compile(r"(?<!^)\b[A-Z][\w'’.-]+(?:\s+(?:of|the|and|de|van|von)?\s*[A-Z][\w'’.-]+)*")),
    (("what", "why", "how", "where"),
     re.compile(r"\b(?:because|so that|in order to|due to) ((?:[\w’'-]+\s+){1,7}[\w’'-]+)(?=[,.;])")),
)  # fmt: skip
"""Words that ask for what is left out, and what that looks like: the pattern's group where it has one."""
app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def written(
    folders: Annotated[list[Path], typer.Argument(help="Folders with files/ and questions.jsonl.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
) -> None:
    """Lessons of documents with questions about them."""
    _write(out, (record for folder in folders for record in written_lessons(folder)))


@app.command()
def ottqa(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder.")],
    questions: Annotated[Path, typer.Argument(help="Train questions.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    clozes: Annotated[int, typer.Option(help="Clozes to make.")] = 4500,
) -> None:
    """Lessons of train questions that a passage answers, and clozes of passages beside them."""
    chance = random.Random(SEED)
    asked = list(read_questions(questions))
    with CorpusStore.open(corpus) as store:
        found = [record for one in asked if (record := question_lesson(store, one, chance))]
        tables = sorted({one.table_id for one in asked if one.table_id})
        chance.shuffle(tables)
        made = (record for table in tables for record in cloze_lessons(store, table, chance))
        _write(out, [*found, *(record for record, _ in zip(made, range(clozes), strict=False))])


def written_lessons(folder: Path) -> Iterator[Record]:
    """Lessons of `questions.jsonl` about the documents of `files`; a question whose words are not found is left out."""
    texts = [(one.source, passage_text(one).text) for one in read_corpus(folder / "files") if isinstance(one, Passage)]
    words = [_words(text) for _, text in texts]
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        here = [text for source, text in texts if source == asked["file"]]
        right = [(text, spans) for text in here if asked["answer"] and (spans := _spans_of(asked, text))]
        if asked["answer"] and not right:
            continue
        same = [text for text in here if text not in dict(right) and not (right and asked["span"] in text)]
        shared = [len(_words(asked["question"]) & found) / (len(found) ** 0.3 + 1) for found in words]
        order = sorted(range(len(texts)), key=lambda at: -shared[at])
        near = [texts[at][1] for at in order if texts[at][0] != asked["file"]][:WRONG]
        yield {"question": asked["question"], "right": right, "wrong": [*same, *near]}


def _spans_of(asked: dict[str, str], text: str) -> Spans:
    """Where the answer stands in the text of a passage that has its sentence, or most of the sentence's words."""
    start = text.find(asked["sentence"])
    if start >= 0:
        first = start + asked["sentence"].find(asked["span"])
        return ((first, first + len(asked["span"])),)
    sentence, span = _words(asked["sentence"]), asked["span"].strip("*_ ")
    found = tuple(match.span() for match in re.finditer(re.escape(span), text))
    near = len(sentence & _words(text)) >= 0.8 * len(sentence)  # marks of Markdown are left out of passages
    return found if near and 0 < len(found) <= 2 else ()


def question_lesson(store: CorpusStore, question: Question, chance: random.Random) -> Record | None:
    """The gold passages of a question that say its answer, alone and with their rows, and others of its table."""
    table = store.tables.get(question.table_id or "")
    gold = {edge.passage_id for edge in question.gold_edges}
    right: dict[str, Spans] = {}
    for edge in question.gold_edges:
        if edge.passage_id is None or edge.segment_id is None:
            continue
        text, row = passage_text(store.passages.get(edge.passage_id)).text, _row(table, edge.segment_id.row)
        spans = tuple(span for answer in question.answers for span in occurrences(text, answer))
        if 0 < len(spans) <= 4:
            right |= dict(cropped(shown, spans, "question", chance) for shown in (text, text + JOIN + row))
    links = [link for link in table.hyperlinks if link.passage_id not in gold]
    chance.shuffle(links)
    wrong = []
    for link in links[:LINKED]:
        text = passage_text(store.passages.get(link.passage_id)).text
        if not any(occurrences(text, answer) for answer in question.answers):
            shown = text if chance.random() < 0.5 else text + JOIN + _row(table, link.row)
            wrong.append(cropped(shown, (), "question", chance)[0])
    kept = [(text, spans) for text, spans in right.items() if spans]
    return {"question": question.text, "right": kept, "wrong": wrong} if kept and wrong else None


def cloze_lessons(store: CorpusStore, table_id: str, chance: random.Random) -> Iterator[Record]:
    """At most two clozes of passages that a table links to, the others beside them."""
    linked = list(dict.fromkeys(link.passage_id for link in store.tables.get(table_id).hyperlinks))
    if len(linked) < 4:
        return
    for chosen in chance.sample(linked, 2):
        passage = store.passages.get(chosen)
        text = passage_text(passage).text
        sentence = chance.choice(_SENTENCE.split(passage.text))
        kinds = [(asks, [m.span(m.lastindex or 0) for m in what.finditer(sentence)]) for asks, what in _BLANKS]
        kinds = [(asks, spans) for asks, spans in kinds if spans]
        start = text.find(sentence)
        if not 40 <= len(sentence) <= 400 or not kinds or start < 0:
            continue
        asks, spans = chance.choice(kinds)
        first, last = chance.choice(spans)
        others = [passage_text(store.passages.get(one)).text for one in chance.sample(linked, 4) if one != chosen]
        wrong = [one for one in others if not occurrences(one, sentence[first:last])]
        if wrong:
            shown, places = cropped(text, ((start + first, start + last),), "cloze", chance)
            question = _cloze(passage.title, sentence[:first] + " " + sentence[last:], chance.choice(asks), chance)
            wrong = [cropped(one, (), "cloze", chance)[0] for one in wrong]
            yield {"question": question, "right": [(shown, places)], "wrong": wrong}


def _cloze(title: str, rest: str, asks: str, chance: random.Random) -> str:
    """What a hurried person would type: most words of the sentence, often the title, the question word at an end."""
    words = [w for w in re.findall(r"[\w’'-]+", rest) if chance.random() > (0.5 if w.lower() in COMMON["en"] else 0.35)]
    words = ([title] if chance.random() < 0.6 else []) + words
    turn = chance.randrange(len(words) + 1) if chance.random() < 0.4 else 0
    words = [*words[turn:], *words[:turn]][:16]
    said = " ".join([asks, *words] if chance.random() < 0.8 else [*words, asks])
    return said.lower() if chance.random() < 0.7 else said


def cropped(text: str, spans: Spans, kind: str, chance: random.Random) -> tuple[str, Spans]:
    """At most `WORDS` of a text around the first span, and 30 of its row; the spans that are left, moved along."""
    body, _, row = text.partition(JOIN)
    words, limit = [match.span() for match in re.finditer(r"\S+", body)], WORDS[kind]
    start, end = 0, len(body)
    if len(words) > limit:
        asked = spans[0][0] if spans else chance.choice(words)[0]
        at = next((number for number, word in enumerate(words) if word[1] > asked), 0)
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


def _row(table: Table, row: int) -> str:
    segment = Segment(SegmentId(table.table_id, row), table.title, table.section, table.header, table.rows[row])
    return segment_text(segment).text


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


def _write(path: Path, records: Iterable[Record]) -> None:
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path.write_text("".join(lines), encoding="utf-8")
    typer.echo(f"{len(lines)} lessons in {path}")


if __name__ == "__main__":
    app()
