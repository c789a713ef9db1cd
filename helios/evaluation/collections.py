"""Public collections of documents as BEIR folders, which `helios index build` and `helios eval documents` read.

    python -m helios.evaluation.collections DATA OUT     # DATA: the folder of public data that the benchmarks use

    OUT/NAME/corpus/corpus.jsonl    {_id, title, text}: `helios index build OUT/NAME/corpus --out INDEX`
    OUT/NAME/queries.jsonl          {_id, text}
    OUT/NAME/qrels/SPLIT.tsv        `dev` to look at, `test` for figures

SciFact's own train queries are `dev`. Of the others a hash sorts questions, those over one seed or site together. A
site's collection is its answers without the titles of their questions: a question is its title and body, and answers
to it that were accepted (2) or have a positive score (1) are relevant.
"""

import argparse
import gzip
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from helios.errors import EvaluationError
from helios.evaluation.sources.loaders.records import json_lines
from helios.sources.documents import Document, Fields, read_documents

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Judged:
    """A query with its relevant documents."""

    query_id: str
    text: str
    qrels: Mapping[str, int]
    split: str


def write_collections(data: Path, out: Path) -> list[Path]:
    """Every collection that DATA has, as folders of OUT; EvaluationError where it has none."""
    found = [folder for write in _COLLECTIONS for folder in write(data, out)]
    if not found:
        raise EvaluationError(f"{data}: none of ir/scifact, sportreason and stackexchange is there")
    return found


def _scifact(data: Path, out: Path) -> Iterator[Path]:
    folder = data / "ir" / "scifact"
    if not folder.is_dir():
        return
    texts = {str(record["_id"]): str(record["text"]) for record in _records(folder / "queries.jsonl.gz")}
    queries = []
    for split, file in (("dev", "qrels.train.tsv"), ("test", "qrels.test.tsv")):
        qrels: dict[str, dict[str, int]] = {}
        for line in (folder / file).read_text(encoding="utf-8").splitlines()[1:]:
            query_id, document_id, gain = line.split("\t")
            qrels.setdefault(query_id, {})[document_id] = int(gain)
        queries += [Judged(query_id, texts[query_id], own, split) for query_id, own in qrels.items()]
    yield _written(out / "scifact", read_documents(folder / "corpus.jsonl.gz", Fields()), queries)


def _sportreason(data: Path, out: Path) -> Iterator[Path]:
    folder = data / "sportreason"
    if not folder.is_dir():
        return
    queries = [
        Judged(str(one["id"]), str(one["question"]), {str(name): 1 for name in _list(one["gold_evidence_ids"])},
               _split(f"sportreason {one['seed_id']}"))
        for one in _records(folder / "dev.jsonl.gz")
    ]  # fmt: skip
    yield _written(out / "sportreason", read_documents(folder / "corpus.jsonl.gz", Fields(text="content")), queries)


def _stackexchange(data: Path, out: Path) -> Iterator[Path]:
    for file in sorted((data / "stackexchange").glob("*.sqlite.gz")):
        site = file.name.removesuffix(".sqlite.gz")
        queries = [
            Judged(str(one["question_id"]), f"{one['title']}\n{one['body']}", _gains(one["qrels_answers"]),
                   _split(f"{site} {one['question_id']}"))
            for one in _records(file.with_name(f"{site}.queries.jsonl.gz"))
        ]  # fmt: skip
        yield _written(out / site, _answers(file), queries)


_COLLECTIONS: tuple[Callable[[Path, Path], Iterator[Path]], ...] = (_scifact, _sportreason, _stackexchange)


def _answers(file: Path) -> Iterator[Document]:
    """The answers of a site, which have no titles."""
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "site.sqlite"
        database.write_bytes(gzip.decompress(file.read_bytes()))
        with closing(sqlite3.connect(database)) as connection:
            rows = connection.execute("SELECT id, body FROM posts WHERE post_type_id = 2 ORDER BY id")
            for number, body in rows:
                yield Document(str(number), "", body or "")


def _written(folder: Path, documents: Iterable[Document], queries: Iterable[Judged]) -> Path:
    """One collection; queries without a relevant document of it are left out."""
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    (folder / "qrels").mkdir(exist_ok=True)
    known = set()
    with (folder / "corpus" / "corpus.jsonl").open("w", encoding="utf-8") as lines:
        for one in documents:
            known.add(one.document_id)
            record = {"_id": one.document_id, "title": one.title, "text": one.text}
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = [one for one in queries if known & {name for name, gain in one.qrels.items() if gain > 0}]
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as lines:
        for query in kept:
            lines.write(json.dumps({"_id": query.query_id, "text": query.text}, ensure_ascii=False) + "\n")
    for split in ("dev", "test"):
        judged = [
            f"{one.query_id}\t{name}\t{gain}\n" for one in kept if one.split == split
            for name, gain in one.qrels.items() if name in known
        ]  # fmt: skip
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))
    return folder


def _split(key: str) -> str:
    """The half that a key falls into, the same anywhere."""
    return ("dev", "test")[blake2b(key.encode(), digest_size=1).digest()[0] % 2]


def _records(file: Path) -> Iterator[Record]:
    for found in json_lines(file):
        if isinstance(found, Exception):
            raise found
        yield found[1]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _gains(value: object) -> dict[str, int]:
    return {str(name): int(gain) for name, gain in value.items()} if isinstance(value, dict) else {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write public collections of documents as BEIR folders.")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    for written in write_collections(arguments.data, arguments.out):
        print(written)  # noqa: T201
