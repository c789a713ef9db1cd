"""Examples to train on: questions with their gold edges and the wrong edges that the engine itself finds.

`mine` searches every question; `ExampleStore` keeps the outcome in a folder of Arrow stream files, which the
library `datasets` opens as they are. Edges are numbers of one corpus, whose hash the store keeps. Mining is
resumed after a kill: a file is one chunk of questions, written whole or not at all.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pyarrow

from helios.evaluation.measures import contains_answer
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically
from helios.index.reader import Corpus
from helios.models.text import passage_text, segment_text
from helios.types import Edge
from training.crossfit import rank_edges
from training.errors import TrainingError
from training.holdout import is_held_out

if TYPE_CHECKING:
    from datasets import Dataset

    from helios.engine import Engine

log = logging.getLogger(__name__)

Pair = tuple[int, int]
"""Segment number and passage number; -1 stands for no node."""
ABSENT = -1
CHUNK = 256
"""Questions of one file."""
MANIFEST = "examples.json"
PAIRS = pyarrow.list_(pyarrow.list_(pyarrow.int32(), 2))
SCHEMA = pyarrow.schema(
    [
        ("question_id", pyarrow.string()),
        ("question", pyarrow.string()),
        ("table_id", pyarrow.string()),
        ("answers", pyarrow.list_(pyarrow.string())),
        ("positives", PAIRS),
        ("negatives", PAIRS),
        ("scores", pyarrow.list_(pyarrow.float32())),
    ]
)


@dataclass(frozen=True, slots=True)
class Example:
    """A question, its gold edges, and wrong edges with their search scores, best first."""

    question_id: str
    question: str
    table_id: str
    answers: tuple[str, ...]
    positives: tuple[Pair, ...]
    negatives: tuple[Pair, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a store was made of; a store of another origin is not continued."""

    corpus: str
    """Hash of tables and passages: edge numbers mean nothing for another corpus."""
    questions: str
    """Hash of the questions."""
    depth: int
    engine: str
    """Fingerprint of the encoder that searched."""


def mine(engine: "Engine", question: Question, *, depth: int = 100) -> Example | None:
    """Search a question and keep what is wrong among its best edges; None where its gold is not in the corpus.

    Wrong is what is neither gold nor holds the answer in its text. A gold row alone, or passage alone, stands for
    all its edges, and its best one is the positive.
    """
    gold = gold_pairs(engine.corpus, question)
    if not gold:
        return None
    found = rank_edges(engine, question.text, k=depth).subgraph
    ranked = [(pair_of(scored.edge), scored.score) for scored in found.edges]
    positives = [next((pair for pair, _ in ranked if covers(one, pair)), one) for one in gold]
    wrong = [
        (pair, score)
        for pair, score in ranked
        if not any(covers(one, pair) for one in gold)
        and not contains_answer(edge_text(engine.corpus, pair), question.answers)
    ]
    return Example(
        question.question_id,
        question.text,
        question.table_id or "",
        question.answers,
        tuple(dict.fromkeys(positives)),
        tuple(pair for pair, _ in wrong),
        tuple(score for _, score in wrong),
    )


def mine_examples(
    engine: "Engine",
    questions: Sequence[Question],
    folder: Path,
    *,
    depth: int = 100,
    threads: int = 1,
    advance: Callable[[int], None] = lambda done: None,
) -> "ExampleStore":
    """Mine all questions into a folder, or go on where a killed run stopped; `advance` is told of each chunk.

    Raises TrainingError for a folder with examples of other questions, another corpus or another encoder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    origin = _origin(engine, questions, depth)
    _check_origin(folder, origin)
    with ThreadPoolExecutor(threads, thread_name_prefix="mine") as pool:
        for start in range(0, len(questions), CHUNK):
            path = folder / f"part-{start // CHUNK:05d}.arrow"
            chunk = questions[start : start + CHUNK]
            if not path.is_file():
                mined = pool.map(lambda question: mine(engine, question, depth=depth), chunk)
                write_atomically(path, _arrow([example for example in mined if example is not None]))
            advance(len(chunk))
    return ExampleStore.open(folder, engine.corpus)


class ExampleStore(Sequence[Example]):
    """Examples of a folder by number; memory-mapped."""

    def __init__(self, folder: Path, table: pyarrow.Table) -> None:
        self.folder = folder
        self._table = table

    @classmethod
    def open(cls, folder: Path, corpus: Corpus) -> "ExampleStore":
        """Open a finished or unfinished store; TrainingError where it is absent or of another corpus."""
        origin = _read_origin(folder)
        if origin is None:
            raise TrainingError(f"{folder}: no {MANIFEST}; make examples with `helios train examples`")
        if origin.corpus != corpus_hash(corpus):
            raise TrainingError(f"{folder}: examples of another corpus; mine them again with this index")
        parts = []
        for path in _parts(folder):
            with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_stream(source) as reader:
                parts.append(reader.read_all())
        return cls(folder, pyarrow.concat_tables(parts) if parts else SCHEMA.empty_table())

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, number: int) -> Example: ...

    @overload
    def __getitem__(self, number: slice) -> list[Example]: ...

    def __getitem__(self, number: int | slice) -> Example | list[Example]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"example {number} of {len(self)}")
        return _example(self._table.slice(number % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Example]:
        for batch in self._table.to_batches(max_chunksize=CHUNK):
            yield from map(_example, batch.to_pylist())

    def dataset(self) -> "Dataset":
        """The same examples as a `datasets.Dataset`, memory-mapped; needs the extra `train`."""
        import datasets

        return datasets.concatenate_datasets([datasets.Dataset.from_file(str(path)) for path in _parts(self.folder)])


def split(examples: Iterable[Example], *, held_out: float, seed: int = 13) -> tuple[list[Example], list[Example]]:
    """(to train on, held out): all questions of a table are on one side, whatever file they come from."""
    sides: tuple[list[Example], list[Example]] = ([], [])
    for example in examples:
        sides[is_held_out(example.table_id, share=held_out, seed=seed)].append(example)
    return sides


def gold_pairs(corpus: Corpus, question: Question) -> list[Pair]:
    """The question's gold edges by number; those with nodes that the corpus lacks are left out."""
    pairs = []
    for gold in question.gold_edges:
        passage = ABSENT if gold.passage_id is None else corpus.passages.find(gold.passage_id)
        segment = ABSENT
        if gold.segment_id is not None:
            try:
                segment = corpus.segment_number(gold.segment_id)
            except KeyError:
                continue
        if passage is not None:
            pairs.append((segment, passage))
    return list(dict.fromkeys(pairs))


def edge_text(corpus: Corpus, pair: Pair) -> str:
    """The texts of an edge's nodes, as the encoder reads them, a line each."""
    segment, passage = pair
    texts = [] if segment == ABSENT else [segment_text(corpus.segment(segment)).text]
    texts += [] if passage == ABSENT else [passage_text(corpus.passages[passage]).text]
    return "\n".join(texts)


def corpus_hash(corpus: Corpus) -> str:
    """A hash of the corpus that edge numbers belong to."""
    digest = hashlib.sha256()
    for names in (corpus.tables.ids(), corpus.passages.ids()):
        for name in names:
            digest.update(f"{name}\n".encode())
    digest.update(str(corpus.segment_count).encode())
    return digest.hexdigest()


def covers(gold: Pair, pair: Pair) -> bool:
    """Whether finding a pair finds the gold edge, in which an absent side means any."""
    return all(wanted in (ABSENT, found) for wanted, found in zip(gold, pair, strict=True))


def pair_of(edge: Edge) -> Pair:
    return (
        ABSENT if edge.segment is None else edge.segment,
        ABSENT if edge.passage is None else edge.passage,
    )


def _origin(engine: "Engine", questions: Sequence[Question], depth: int) -> Origin:
    digest = hashlib.sha256()
    for question in questions:
        digest.update(f"{question.question_id}\t{question.text}\t{question.answers}\t{question.gold_edges}\n".encode())
    return Origin(corpus_hash(engine.corpus), digest.hexdigest(), depth, engine.encoder.fingerprint)


def _check_origin(folder: Path, origin: Origin) -> None:
    found = _read_origin(folder)
    if found is None:
        write_atomically(folder / MANIFEST, (json.dumps(asdict(origin), indent=2) + "\n").encode())
    elif found != origin:
        names = [name for name, value in asdict(origin).items() if asdict(found)[name] != value]
        raise TrainingError(f"{folder}: holds examples of another {', '.join(names)}; use an empty folder")


def _read_origin(folder: Path) -> Origin | None:
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return Origin(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise TrainingError(f"{path}: not the description of an example store ({error})") from error


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.arrow"))


def _arrow(examples: Sequence[Example]) -> bytes:
    table = pyarrow.Table.from_pylist([asdict(example) for example in examples], schema=SCHEMA)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _example(record: dict[str, Any]) -> Example:
    return Example(
        record["question_id"],
        record["question"],
        record["table_id"],
        tuple(record["answers"]),
        tuple((left, right) for left, right in record["positives"]),
        tuple((left, right) for left, right in record["negatives"]),
        tuple(record["scores"]),
    )
