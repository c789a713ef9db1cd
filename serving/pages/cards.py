"""Replies of the server as the page shows them: evidence cards, the answer in words, and the row's star."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from helios.models.text import sentences_of
from helios.reading.cli import LIKELY, POSSIBLE
from helios.types import Passage
from serving.pages.marks import Mark, Piece, matches_in, names_in, pieces
from serving.replies import web_address

Json = dict[str, Any]
PROBABLE = ((0.75, "very likely evidence"), (0.5, "likely evidence"), (0.2, "possibly evidence"), (0.05, "unlikely"))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell below its header."""

    header: str
    pieces: list[Piece]
    linking: bool
    answers: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a table of one."""

    title: str
    section: str
    number: int
    cells: list[Cell]
    address: str


@dataclass(frozen=True, slots=True)
class Text:
    """A passage, sentence by sentence; `cited` are those that the answer cites."""

    title: list[Piece]
    sentences: list[tuple[bool, list[Piece]]]
    source: str
    url: str
    address: str


@dataclass(frozen=True, slots=True)
class Card:
    """One piece of evidence."""

    rank: int
    percent: int
    words: str
    how: str
    rejected: bool
    row: Row | None
    text: Text | None


def cards_of(found: Json) -> list[Card]:
    """The evidence of a reply, with its citations marked."""
    citations = found.get("answer", {}).get("citations", [])
    return [_card(edge, found["index"], citations) for edge in found["evidence"]["edges"]]


def question_words(found: Json) -> list[str]:
    """The words of the question that something matched, as they are hovered over."""
    words = (match["query_token"] for edge in found["evidence"]["edges"] for match in edge["matches"])
    return list(dict.fromkeys(str(word).casefold() for word in words))


def sureness(confidence: float) -> str:
    """An answer's confidence in a word, as `helios ask` says it."""
    return "likely" if confidence >= LIKELY else "possible" if confidence >= POSSIBLE else "weak: look at the evidence"


def probability_words(probability: float) -> str:
    """A probability in words, for its bar."""
    return next((words for least, words in PROBABLE if probability >= least), "hardly evidence")


def row_of(segment: Json, links: Sequence[Json], index: str, citations: Sequence[Json] = (),
           matches: Sequence[Json] = ()) -> Row:  # fmt: skip
    """A row with its links, the answer and the matches marked."""
    cells = []
    for column, (header, cell) in enumerate(zip(segment["header"], segment["cells"], strict=True)):
        linked = [Mark(link["start"], link["end"], "link") for link in links if link["column"] == column]
        cited = [
            Mark(one["start"], one["end"], "answer")
            for one in citations
            if one["segment"] == segment["id"] and one["column"] == column
        ]
        matched = matches_in(cell, matches, f"cell:{column}")
        cells.append(Cell(header, pieces(cell, [*linked, *cited, *matched]), bool(linked), bool(cited)))
    address = "row?" + urlencode({"index": index, "table": segment["table_id"], "row": segment["row"]})
    return Row(segment["title"], segment["section"], segment["row"], cells, address)


def text_of(passage: Json, index: str, *, name: str = "", citations: Sequence[Json] = (),
            matches: Sequence[Json] = ()) -> Text:  # fmt: skip
    """A passage with the linked name, the cited sentences and the matches marked."""
    own = [one for one in citations if one["passage_id"] == passage["id"]]
    title = [Mark(one["start"], one["end"], "answer") for one in own if one["sentence"] is None]
    title += [Mark(0, len(passage["title"]), "link")] if name else []
    title += matches_in(passage["title"], matches, "title")
    sentences = []
    for number, sentence in sentences_of(Passage(passage["id"], passage["title"], passage["text"])):
        cited = [Mark(one["start"], one["end"], "answer") for one in own if one["sentence"] == number]
        marks = [*cited, *names_in(sentence, name), *matches_in(sentence, matches, f"sentence:{number}")]
        sentences.append((bool(cited), pieces(sentence, marks)))
    address = "passage?" + urlencode({"index": index, "id": passage["id"]})
    shown = pieces(passage["title"], title) or pieces(passage["id"], [])
    return Text(shown, sentences, passage["source"], web_address(passage["url"]), address)


def linked_name(segment: Json, links: Sequence[Json]) -> str:
    """The words of the row that name the passage."""
    if not links:
        return ""
    return str(segment["cells"][links[0]["column"]][links[0]["start"] : links[0]["end"]])


def _card(edge: Json, index: str, citations: Sequence[Json]) -> Card:
    segment, passage, links, matches = edge["segment"], edge["passage"], edge["links"], edge["matches"]
    how = {"linked": "linked", "expanded": "a link that the graph lacks", "aggregated": "chosen by comparing rows"}
    name = linked_name(segment, links) if segment and passage else ""
    return Card(
        edge["rank"], round(100 * edge["probability"]), probability_words(edge["probability"]),
        how[edge["origin"]] if segment and passage else "text alone" if passage else "row alone", edge["rejected"],
        row_of(segment, links, index, citations, matches) if segment else None,
        text_of(passage, index, name=name, citations=citations, matches=matches) if passage else None,
    )  # fmt: skip
