"""Citations against the store: what an answer cites is read again and must be there, word for word."""

import re
from dataclasses import replace

from helios.index.lexical import terms_of
from helios.index.reader import Corpus
from helios.models.text import sentences_of
from helios.reading.base import Answer, Citation, Support

_NAMED = r"[^()]+ \([^()\s]+\)"


def checked(answer: Answer, corpus: Corpus) -> Answer:
    """The answer with the citations that the store confirms; the others are named in `dropped`.

    An answer that is left without any citation says so in `support`.
    """
    if answer.abstained:
        return answer
    kept: list[Citation] = []
    dropped = list(answer.dropped)
    supported = False
    for citation in answer.citations:
        source = cited_source(citation, corpus)
        problem = _problem(citation, source)
        if problem:
            dropped.append(problem)
        else:
            kept.append(citation)
            supported = supported or holds(source or "", answer.text)
    supported = supported or _is_listed(answer.text, kept)
    support = Support.UNSUPPORTED if not kept else Support.CHECKED if supported else Support.CITED
    return replace(answer, citations=tuple(kept), dropped=tuple(dropped), support=support)


def cited_source(citation: Citation, corpus: Corpus) -> str | None:
    """The whole cell, sentence or title that a citation points to, from the store; None where there is none."""
    if citation.segment_id is not None and citation.column is not None:
        try:
            cells = corpus.segment(corpus.segment_number(citation.segment_id)).cells
        except KeyError:
            return None
        return cells[citation.column] if 0 <= citation.column < len(cells) else None
    number = None if citation.passage_id is None else corpus.passages.find(citation.passage_id)
    if number is None:
        return None
    passage = corpus.passages[number]
    if citation.sentence is None:
        return passage.title
    return dict(sentences_of(passage)).get(citation.sentence)


def place_of(citation: Citation, corpus: Corpus) -> str:
    """The title and the column or sentence of a citation, for people."""
    if citation.segment_id is not None and citation.column is not None:
        table = corpus.tables[corpus.tables.number(citation.segment_id.table_id)]
        return f"{table.title}, row {citation.segment_id.row}, {table.header[citation.column]}"
    passage = corpus.passages[corpus.passages.number(str(citation.passage_id))]
    return f"{passage.title}, title" if citation.sentence is None else f"{passage.title}, sentence {citation.sentence}"


def file_of(citation: Citation, corpus: Corpus) -> str:
    """The file that a citation is from, relative to the corpus."""
    if citation.segment_id is not None:
        return corpus.tables[corpus.tables.number(citation.segment_id.table_id)].source
    return corpus.passages[corpus.passages.number(str(citation.passage_id))].source


def holds(source: str, answer: str) -> bool:
    """Whether an answer stands in a text, word by word; an answer without words never does."""
    words = " ".join(terms_of(answer))
    return bool(words) and f" {words} " in f" {' '.join(terms_of(source))} "


def parts_of(answer: str) -> list[str]:
    """Names and codes of an answer that gives both, as "Kasia Venn (KV), Marta Brand (MB)"; none of any other."""
    named = re.fullmatch(rf"{_NAMED}(?:, {_NAMED})*", answer)
    return [part for pair in re.findall(r"([^()]+) \(([^()\s]+)\)(?:, )?", answer) for part in pair] if named else []


def _is_listed(answer: str, kept: list[Citation]) -> bool:
    """Whether an answer is a list, or names with codes, and every word of it stands in a cited cell or sentence."""
    if parts := parts_of(answer):
        return all(any(holds(citation.text, part) for citation in kept) for part in parts)
    items = answer.split(", ")
    return 1 < len(items) <= len(kept) and set(terms_of(answer)) <= {
        term for citation in kept for term in terms_of(citation.text)
    }


def describe(citation: Citation) -> str:
    """Where a citation points, in words."""
    if citation.segment_id is not None:
        return f"{citation.segment_id}, column {citation.column}"
    place = "title" if citation.sentence is None else f"sentence {citation.sentence}"
    return f"{citation.passage_id}, {place}"


def _problem(citation: Citation, source: str | None) -> str:
    """Why a citation does not hold; empty if it does."""
    if source is None:
        return f"{describe(citation)}: not in the corpus"
    if not citation.text.strip():
        return f"{describe(citation)}: cites no words"
    if source[citation.start : citation.end] != citation.text:
        return f"{describe(citation)}: does not say {citation.text!r} there"
    return ""
