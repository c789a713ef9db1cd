"""What every loader does: read records, turn each into a question, keep apart what cannot be used."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from helios.errors import EvaluationError, RecordError
from helios.evaluation.sources.loaders.records import Numbered, Record
from helios.evaluation.sources.questions import SourceQuestion

Rejects = list[RecordError]
ReadRecord = Callable[[Path, int, Record], SourceQuestion]

WIKIDATA_PREFIXES = {
    "bd": "http://www.bigdata.com/rdf#",
    "p": "http://www.wikidata.org/prop/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "wikibase": "http://wikiba.se/ontology#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Wikidata's own endpoint knows these without a declaration, and data sets rely on it."""


def questions_of(
    path: Path, records: Iterable[Numbered | RecordError], read: ReadRecord, rejects: Rejects | None
) -> Iterator[SourceQuestion]:
    """A question of every record; a record that cannot be used is raised, or collected where there are `rejects`.

    Ids that come from lines get the place within the line too, for arrays that are written on one.
    """
    on_line: Counter[int] = Counter()
    for record in records:
        try:
            if isinstance(record, RecordError):
                raise record
            line = record[0]
            on_line[line] += 1
            question = read(path, *record)
            if on_line[line] > 1 and question.question_id.endswith(f"-line{line}"):
                question = replace(question, question_id=f"{question.question_id}.{on_line[line]}")
            yield question
        except RecordError as error:
            if rejects is None:
                raise
            rejects.append(error)


def first_existing(folder: Path, *names: str) -> Path:
    """The first of some files that a folder has, plain or gzipped; EvaluationError says which were looked for."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    raise EvaluationError(f"{folder}: expected {' or '.join(names)} in it")


def with_prefixes(sparql: str, prefixes: dict[str, str]) -> str:
    """A query that declares the prefixes it uses; a declaration of its own goes first."""
    lowered = sparql.lower()
    missing = [
        f"PREFIX {name}: <{iri}>"
        for name, iri in prefixes.items()
        if _uses(sparql, name) and f"prefix {name.lower()}:" not in " ".join(lowered.split())
    ]
    return "\n".join([*missing, sparql])


def _uses(sparql: str, name: str) -> bool:
    return re.search(rf"(?<![\w\\.-]){re.escape(name)}:[\w]", sparql) is not None
