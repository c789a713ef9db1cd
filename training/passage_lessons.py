"""Lessons for the reader of passages (`training.passage_reader`), one JSON object a line.

    python -m training.passage_lessons written training/texts/a training/texts/b --out written.jsonl
    python -m training.passage_lessons ottqa CORPUS train.jsonl.gz --out ottqa.jsonl
    python -m training.passage_lessons made CORPUS --splits splits.json --out made.jsonl

`written` reads folders of documents with questions whose answer's words and sentence are known, `ottqa` questions over
tables and passages. `made` asks about passages and rows in words that it takes from others (`training.made_lessons`).

    {"question": "…", "right": [["a text that answers", [[12, 22]]]], "wrong": ["a text that does not"]}
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from helios.cli import RootGroup
from helios.corpus import CorpusStore, read_corpus
from helios.evaluation.questions import Question, read_questions
from helios.models.text import passage_text, segment_text
from helios.reading.windows import JOIN
from helios.types import Passage, Segment, SegmentId, Table
from training.made_lessons import Record, Spans, cropped, made_lessons, names_of, occurrences
from training.reader_examples import table_fold

WRONG = 5
"""Passages of other files beside a written question, those that share most words with it."""
LINKED = 6
"""Passages of the same table that do not answer a question."""
WORDS = 70
"""Words of a text around what answers, at most."""
SEED = 7
TABLES = 13
"""Seed of the order of tables whose shares may be left out, that of the recipe `reader`."""
app = typer.Typer(cls=RootGroup, add_completion=False, help=__doc__)


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
    without: Annotated[str, typer.Option(help="A share of the tables to leave out, as 0/2 or 1/2.")] = "",
) -> None:
    """Lessons of train questions that a passage answers."""
    chance = random.Random(SEED)
    asked = list(read_questions(questions))
    if without:
        share, shares = map(int, without.split("/"))
        asked = [one for one in asked if int(table_fold(one, seed=TABLES) * shares) != share]
    store = CorpusStore.open(corpus)
    _write(out, (record for one in asked if (record := question_lesson(store, one, chance))))


@app.command()
def made(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder.")],
    splits: Annotated[Path, typer.Option(help="JSON with the ids of the tables of `train`; no other is used.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    tables: Annotated[int, typer.Option(help="Tables to make lessons of, about 130 each.")] = 5000,
) -> None:
    """Lessons that nobody wrote, of passages and the rows that link to them."""
    chance = random.Random(SEED)
    store = CorpusStore.open(corpus)
    train = sorted(json.loads(splits.read_text(encoding="utf-8"))["train"])
    chosen = [store.tables.get(one) for one in chance.sample(train, min(tables, len(train)))]
    linked = {link.passage_id for table in chosen for link in table.hyperlinks}
    passages = {one: store.passages.get(one) for one in linked if store.passages.find(one) is not None}
    _write(out, made_lessons(chosen, passages, names_of(passages), chance))


def written_lessons(folder: Path) -> Iterator[Record]:
    """Lessons of `questions.jsonl` about the documents of `files`; a question whose words are not found is left out."""
    texts = [(one.source, passage_text(one).text) for one in read_corpus(folder / "files") if isinstance(one, Passage)]
    words = [_words(text) for _, text in texts]
    for line in (folder / "questions.jsonl").read_bytes().splitlines():
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
        if edge.passage_id is None or edge.segment_id is None or store.passages.find(edge.passage_id) is None:
            continue
        text, row = passage_text(store.passages.get(edge.passage_id)).text, _row(table, edge.segment_id.row)
        spans = tuple(span for answer in question.answers for span in occurrences(text, answer))
        if 0 < len(spans) <= 4:
            right |= dict(cropped(shown, spans, WORDS, chance) for shown in (text, text + JOIN + row))
    links = [
        one
        for one in table.hyperlinks
        if one.passage_id not in gold and store.passages.find(one.passage_id) is not None
    ]
    chance.shuffle(links)
    wrong = []
    for link in links[:LINKED]:
        text = passage_text(store.passages.get(link.passage_id)).text
        if not any(occurrences(text, answer) for answer in question.answers):
            shown = text if chance.random() < 0.5 else text + JOIN + _row(table, link.row)
            wrong.append(cropped(shown, (), WORDS, chance)[0])
    kept = [(text, spans) for text, spans in right.items() if spans]
    return {"question": question.text, "right": kept, "wrong": wrong} if kept and wrong else None


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
