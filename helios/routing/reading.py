"""A short answer from indexed tables and passages, where no query of a source gave one.

The reader is that of `helios ask --index`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helios.errors import SourceError
from helios.executors.base import Language
from helios.reading.base import Citation
from helios.reading.citations import place_of
from helios.routing.evidence import MadeBy, SourceAnswer, SourceReply
from helios.routing.selection import Selection
from helios.sources.base import Source
from helios.sources.corpus import IndexCorpus


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """Answers that were read, the best first, and what could not be read."""

    answers: tuple[SourceAnswer, ...] = ()
    notes: tuple[str, ...] = ()
    degraded: bool = False


def read_answers(
    question: str, selection: Selection, replies: Sequence[SourceReply], sources: Mapping[str, Source]
) -> ReadAnswers:
    """The reader's answer from each HELIOS index that found something, with citations that its store confirms."""
    probability = {ranked.name: ranked.probability for ranked in selection.sources}
    answers, notes, degraded = [], [], False
    for reply in replies:
        if reply.language is not Language.TEXT or not reply.executions:
            continue
        try:
            corpus = getattr(sources[reply.source], "opened", sources[reply.source])
            if not isinstance(corpus, IndexCorpus):
                continue
            answer = _read(question, reply, corpus)
        except SourceError as error:
            notes.append(f"{reply.source}: not read: {error}")
            degraded = True
            continue
        if isinstance(answer, SourceAnswer):
            answers.append(answer)
        else:
            notes.append(f"{reply.source}: no short answer: {answer}")
    answers.sort(key=lambda answer: -(answer.confidence * probability.get(answer.source, 0.0)))
    return ReadAnswers(tuple(answers), tuple(notes), degraded)


def _read(question: str, reply: SourceReply, corpus: IndexCorpus) -> SourceAnswer | str:
    """The answer with the rows of the search that hold what it cites, or why there is none."""
    execution = reply.executions[0]
    read = corpus.read(question)
    if read.abstained or not read.citations:
        return read.reason or "nothing in the index says it"
    rows = tuple(
        number
        for number, (table_id, row, passage_id, *_) in enumerate(execution.result.rows)
        if any(_cites(citation, table_id, row, passage_id) for citation in read.citations)
    )
    cited = tuple(f"{place_of(citation, corpus.engine.corpus)}: {citation.text}" for citation in read.citations)
    return SourceAnswer(
        reply.source, read.text, (read.text,), execution.query, MadeBy.READER, rows, read.confidence, cited
    )


def _cites(citation: Citation, table_id: object, row: object, passage_id: object) -> bool:
    segment = citation.segment_id
    if segment is None:
        return citation.passage_id == passage_id
    return (segment.table_id, segment.row) == (table_id, row)
