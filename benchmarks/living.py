"""What changes of an index cost, and what searches feel of them; figures in docs/benchmarks.md.

    python benchmarks/living.py soak INDEX --seconds 600
    python benchmarks/living.py costs INDEX
    python benchmarks/living.py adds CORPUS QUESTIONS --tables 60 --work FOLDER

The first two work on a copy of INDEX beside it, of hard links where the file system has them, and remove it.
"""

import argparse
import gc
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

import numpy as np

from helios.corpus import read_corpus
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import HeliosError
from helios.evaluation.edges import ranked_edges
from helios.evaluation.evaluate import QuestionResult, bootstrap_interval, measure_question
from helios.evaluation.questions import Question, read_questions
from helios.index.backup import back_up
from helios.index.fsck import check_index
from helios.index.manifest import read_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.types import Evidence, Passage, Table
from indexing.living import Index
from indexing.living.links import Links
from indexing.progress import Meter, SilentMeter, SilentProgress
from indexing.values import build_from

SETTINGS = ["encoder.runtime=torch"]
STAMPED = 4
"""Records of each kind that every update of the soak changes, all at once."""
STAMP = re.compile(r"stamp (\d+)")
STAMP_QUESTION = "Which stamp do the registers of the harbour office bear?"
THREADS = 8
MEASURES = ("AR@2", "AR@5", "AR@10", "AR@50", "nDCG@50", "HITS@4K", "table R@1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("soak", help="search while a writer, a deleter and a compactor work")
    one.add_argument("index", type=Path)
    one.add_argument("--seconds", type=float, default=600.0, help="how long others write")
    one.add_argument("--questions", type=Path, default=sample_path() / QUESTIONS)
    one.set_defaults(run=lambda given: soak(given.index, given.seconds, given.questions))
    one = commands.add_parser("costs", help="time and memory of adding, deleting and compacting")
    one.add_argument("index", type=Path)
    one.add_argument("--share", type=float, default=0.01, help="of the corpus that is added")
    one.add_argument("--delete", type=int, default=10_000, metavar="NODES")
    one.set_defaults(run=lambda given: costs(given.index, given.share, given.delete))
    one = commands.add_parser("adds", help="an index of ten additions against one build of the same records")
    one.add_argument("corpus", type=Path)
    one.add_argument("questions", type=Path)
    one.add_argument("--tables", type=int, default=60, help="how many tables with questions are read")
    one.add_argument("--work", type=Path, required=True, help="an empty folder for the indexes")
    one.set_defaults(run=lambda given: adds(given.corpus, given.questions, given.tables, given.work))
    given = parser.parse_args()
    sys.stdout.write(json.dumps(given.run(given), indent=1) + "\n")


@contextmanager
def copied(index: Path) -> Iterator[Path]:
    """A copy of an index that may be changed."""
    with tempfile.TemporaryDirectory(dir=index.resolve().parent, prefix="living-") as place:
        back_up(index, Path(place) / "index")
        yield Path(place) / "index"


# soak -----------------------------------------------------------------------------------------------------------------


def soak(source: Path, seconds: float, questions: Path) -> dict[str, object]:
    """Search with eight threads, first alone, then beside a writer, a deleter and a compactor, then alone again."""
    asked = [question.text for question in read_questions(questions)]
    with copied(source) as copy:
        log = copy.parent / "changes"
        log.mkdir()
        index = Index.open(copy, overrides=SETTINGS)
        write(index, log, random.Random(0), 0)
        index.compact(whole=True)
        with Engine.open(copy, overrides=SETTINGS, follow=0.5) as engine:
            searches = Searches(engine, asked)
            searches.during("warm", max(2.0, seconds / 10))
            searches.during("quiet", max(2.0, seconds / 8))
            stop = log / "stop"
            context = get_context("spawn")
            others = [context.Process(target=work, args=(copy, log, role, stop)) for role in ROLES]
            for process in others:
                process.start()
            try:
                wait_for(log, ROLES)
                searches.during("busy", seconds)
            finally:
                stop.touch()
                for process in others:
                    process.join()
            index.compact(whole=True)  # as many parts as at the start
            engine.refresh()
            searches.during("after", max(2.0, seconds / 10))
        changes = [json.loads(line) for path in log.glob("*.jsonl") for line in path.read_text().splitlines()]
        problems = [repr(one) for one in check_index(copy) if one.severity == "error"]
        return report(searches, changes) | {
            "exit_codes": [process.exitcode for process in others], "fsck": problems,
            "snapshots": read_manifest(copy).generation,
        }  # fmt: skip


class Searches:
    """Threads that ask, and what they saw."""

    def __init__(self, engine: Engine, questions: list[str]) -> None:
        self.engine, self.questions = engine, questions
        self.seconds: dict[str, list[float]] = {}
        self.seen: list[tuple[int, frozenset[int], frozenset[str]]] = []
        self.failures: list[str] = []
        self.resources: list[tuple[str, float, float, int]] = []
        """Phase, seconds since the start, megabytes of memory and files of the index that are open or mapped."""
        self._started = time.monotonic()

    def during(self, phase: str, seconds: float) -> None:
        """Ask with all threads for so long."""
        end, done = time.monotonic() + seconds, Event()
        taken = self.seconds.setdefault(phase, [])
        threads = [Thread(target=self._ask, args=(random.Random(n), end, taken)) for n in range(THREADS)]
        watch = Thread(target=self._watch, args=(phase, done, max(0.5, seconds / 20)))
        for thread in (*threads, watch):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        watch.join()

    def _ask(self, chance: random.Random, end: float, taken: list[float]) -> None:
        while time.monotonic() < end:
            try:
                started = time.perf_counter()
                self.engine.search(chance.choice(self.questions))
                taken.append(time.perf_counter() - started)
                if chance.random() < 0.25:
                    self.seen.append(stamps(self.engine.search(STAMP_QUESTION, k=30)))
            except Exception as error:  # noqa: BLE001  whatever a user of it could meet
                self.failures.append(f"{type(error).__name__}: {error}")

    def _watch(self, phase: str, done: Event, every: float) -> None:
        while True:
            ended = done.wait(every)
            gc.collect()
            at = time.monotonic() - self._started
            self.resources.append((phase, round(at, 1), memory_now(), files_held(self.engine.snapshot.directory)))
            if ended:
                return


def stamps(evidence: Evidence) -> tuple[int, frozenset[int], frozenset[str]]:
    """The snapshot of an answer, the stamps that its records bear, and what it shows of records that are deleted."""
    texts = [
        text
        for edge in evidence.edges
        for text in ((edge.passage.text,) if edge.passage else ()) + (edge.segment.cells if edge.segment else ())
    ]
    found = frozenset(int(number) for text in texts for number in STAMP.findall(text))
    fillers = [edge.passage.passage_id for edge in evidence.edges if edge.passage]
    return evidence.generation, found, frozenset(name for name in fillers if name.startswith("filler-"))


def write(index: Index, log: Path, chance: random.Random, number: int) -> None:
    """Replace all stamped records by ones with the next stamp, and add one that the deleter takes."""
    place = log / "write.jsonl"
    stamp = len(place.read_text().splitlines()) + 1 if place.exists() else 1
    tables = [
        {
            "id": f"register-{n}", "title": f"Harbour office register {n}", "header": ["Register", "Bears"],
            "rows": [[f"Harbour register {n}", f"stamp {stamp}"]], "links": [[0, 0, f"register-page-{n}"]],
        }
        for n in range(STAMPED)
    ]  # fmt: skip
    passages = [
        {
            "id": f"register-page-{n}", "title": f"Harbour register {n}",
            "text": f"The register {n} of the harbour office bears stamp {stamp}.",
        }
        for n in range(STAMPED)
    ]  # fmt: skip
    filler = f"filler-{stamp}"
    passages.append({"id": filler, "title": "Harbour office", "text": f"A note {stamp} on registers of the office."})
    change = index.update(tables, passages)
    note(place, generation=change.generation, stamp=stamp, filler=filler)


def delete(index: Index, log: Path, chance: random.Random, number: int) -> None:
    """Delete a record that the writer added."""
    written = [json.loads(line) for line in (log / "write.jsonl").read_text().splitlines()]
    gone = log / "delete.jsonl"
    done = len(gone.read_text().splitlines()) if gone.exists() else 0
    if done < len(written):
        filler = written[done]["filler"]
        change = index.delete([filler])
        assert not change.missing, f"{filler} was lost"
        note(gone, generation=change.generation, filler=filler)


def compact(index: Index, log: Path, chance: random.Random, number: int) -> None:
    """Merge small parts; all parts now and then."""
    change = index.compact(whole=number % 10 == 9)
    note(log / "compact.jsonl", generation=change.generation, seconds=change.seconds)


ROLES: dict[str, tuple[Callable[[Index, Path, random.Random, int], None], float, int]] = {
    "write": (write, 2.0, 0), "delete": (delete, 3.0, 0), "compact": (compact, 5.0, 10),
}  # fmt: skip
"""What each process does, how many seconds it rests between, and how nice it is."""


def work(index: Path, log: Path, role: str, stop: Path) -> None:
    """Change an index again and again."""
    do, rest, nice = ROLES[role]
    os.nice(nice)
    opened, chance, number = Index.open(index, overrides=SETTINGS), random.Random(role), 0
    (log / f"{role}.ready").touch()
    while not stop.exists():
        do(opened, log, chance, number)
        number += 1
        end = time.monotonic() + chance.uniform(0.5, 1.5) * rest
        while time.monotonic() < end and not stop.exists():
            time.sleep(0.05)


def wait_for(log: Path, roles: object) -> None:
    """Until all processes have begun."""
    deadline = time.monotonic() + 300
    while not all((log / f"{role}.ready").exists() for role in roles):  # type: ignore[attr-defined]
        if time.monotonic() > deadline:
            raise HeliosError("the processes that change the index did not start")
        time.sleep(0.1)


def note(place: Path, **fields: object) -> None:
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": place.stem, **fields}) + "\n")


def report(searches: Searches, changes: list[dict]) -> dict[str, object]:
    """What the searches saw against what was committed."""
    written = sorted((one["generation"], one["stamp"]) for one in changes if one["kind"] == "write")
    gone = {one["filler"]: one["generation"] for one in changes if one["kind"] == "delete"}
    mixed = stale = back = 0
    for generation, found, fillers in searches.seen:
        wanted = max(stamp for at, stamp in written if at <= generation)
        mixed += len(found) > 1
        stale += bool(found) and found != {wanted}
        back += any(gone.get(name, generation + 1) <= generation for name in fillers)
    phases = {
        phase: {
            "questions": len(own), "p50_ms": round(1000 * float(np.percentile(own, 50))),
            "p95_ms": round(1000 * float(np.percentile(own, 95))),
        }
        for phase, own in searches.seconds.items()
        if own
    }  # fmt: skip
    held = {
        phase: [(at, memory, files) for name, at, memory, files in searches.resources if name == phase]
        for phase in searches.seconds
    }
    return {
        "phases": phases,
        "p95_busy_to_quiet": round(phases["busy"]["p95_ms"] / phases["quiet"]["p95_ms"], 2),
        "checked": len(searches.seen), "of_two_snapshots": mixed, "not_of_their_snapshot": stale, "came_back": back,
        "empty": sum(not found for _, found, _ in searches.seen),
        "failed": len(searches.failures), "failures": searches.failures[:5],
        "snapshots_seen": len({generation for generation, _, _ in searches.seen}),
        "changes": {role: sum(one["kind"] == role for one in changes) for role in ROLES},
        "memory_mb_and_files": {phase: [own[0][1:], own[-1][1:]] for phase, own in held.items()},
        "memory_mb_most": max(memory for _, _, memory, _ in searches.resources),
        "files_most": max(files for *_, files in searches.resources),
        # The engine that follows reads a manifest twice a second; a look that meets it counts one file more.
        "files_kept": {phase: min(files for *_, files in own) for phase, own in held.items()},
    }  # fmt: skip


# costs ----------------------------------------------------------------------------------------------------------------


def costs(index: Path, share: float, deleted: int) -> dict[str, object]:
    """Add a share of the corpus and a table of 20 rows, delete nodes, compact; each in a process of its own."""
    found: dict[str, object] = {}
    for name, do in (("add", add_share), ("table", add_table), ("delete", delete_nodes), ("compact", compact_all)):
        with copied(index) as copy, get_context("spawn").Pool(1) as pool:
            found[name] = pool.apply(measured, (do, copy, {"add": share, "delete": deleted}.get(name, 0)))
    return found


def measured(do: Callable[[Path, float], dict[str, object]], index: Path, how: float) -> dict[str, object]:
    """What `do` says, with the largest memory of the process."""
    return do(index, how) | {"peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}


def add_share(index: Path, share: float) -> dict[str, object]:
    """Copies of a share of tables and passages under new ids, against encoding and linking the same records alone."""
    opened, timed = Index.open(index), Timed()
    opened.progress = timed
    with Snapshot.open(index) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        chance = np.random.default_rng(1)
        tables, passages = (
            [records[number] for number in chosen.tolist()]
            for records, chosen in (
                (one, np.sort(chance.choice(len(one), round(share * len(one)), replace=False)))
                for one in (corpus.tables, corpus.passages)
            )
        )
    renamed = [replaced(record, "table_id") for record in tables], [replaced(one, "passage_id") for one in passages]
    opened.add([], [{"id": "warm", "title": "Zzyzx Qwrt", "text": "Models are loaded, words are read."}])
    timed.seconds.clear()
    started, used = time.monotonic(), time.process_time()
    change = opened.add(*renamed)
    seconds, used = time.monotonic() - started, time.process_time() - used
    stages = {name: round(own, 2) for name, own in timed.seconds.items()}
    link = linked_alone(opened, index)
    return {
        "rows": change.segments, "passages": change.passages, "links": change.links, "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2), "stages": stages, "link_alone": round(link, 2),
        "to_encode_and_link": round(seconds / (stages["encode"] + link), 2),
    }  # fmt: skip


def linked_alone(opened: Index, index: Path) -> float:
    """Seconds that deciding the links of the newest part's rows takes, with the words of passages read."""
    links = Links(opened.config, index.parent / "words")
    links._words = opened.links._words
    with Snapshot.open(index) as snapshot:
        reader, last = IndexReader.of(snapshot), len(snapshot.parts) - 1
        _ = reader.corpus
        started = time.monotonic()
        (index.parent / "routes").mkdir()
        links.of_rows(reader, {last: reader.numbering.segments[last]}, index.parent / "routes", SilentMeter())
        return time.monotonic() - started


def add_table(index: Path, _: float) -> dict[str, object]:
    """A table of 20 rows, until an engine that is open finds it."""
    row = [[f"Quay {n}", f"{n} cranes", "Harbour of Zzyzx"] for n in range(20)]
    table = {
        "id": "quays",
        "title": "Quays of the harbour of Zzyzx",
        "header": ["Quay", "Cranes", "Place"],
        "rows": row,
    }
    opened = Index.open(index)
    opened.add([], [{"id": "warm", "title": "Zzyzx Qwrt", "text": "Models are loaded, words are read."}])
    with Engine.open(index) as engine:
        engine.search("How many cranes has quay 7?")
        started, used = time.monotonic(), time.process_time()
        change = opened.add([table])
        added = time.monotonic() - started
        engine.refresh()
        found = engine.search("How many cranes has quay 7 of the harbour of Zzyzx?")
        seconds = time.monotonic() - started
        first = next((n for n, one in enumerate(found.edges, 1) if one.segment and "Quay 7" in one.segment.cells), None)
    return {
        "rows": change.segments, "add_seconds": round(added, 2), "searchable_seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - used, 2), "rank": first,
    }  # fmt: skip


def delete_nodes(index: Path, count: float) -> dict[str, object]:
    """Whole tables and passages at random, by id, without linking anew."""
    with Snapshot.open(index) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        chance, ids, nodes = np.random.default_rng(1), [], 0
        for kind in chance.integers(0, 2, 10 * int(count)).tolist():
            records = (corpus.tables, corpus.passages)[kind]
            number = int(chance.integers(len(records)))
            size = 1 if kind else int(np.diff(corpus.segment_offsets[number : number + 2])[0])
            if nodes + size <= count and size < 50:
                ids.append(records.id(number))
                nodes += size
    started, used = time.monotonic(), time.process_time()
    change = Index.open(index).delete(ids, relink=False)
    return {
        "nodes": change.deleted_segments + change.deleted_passages, "seconds": round(time.monotonic() - started, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
    }  # fmt: skip


def compact_all(index: Path, _: float) -> dict[str, object]:
    """Ten additions of one passage, then all parts as one."""
    opened = Index.open(index)
    for number in range(10):
        opened.add([], [{"id": f"one-{number}", "title": f"Zzyzx Qwrt {number}", "text": "A text."}])
    started, used = time.monotonic(), time.process_time()
    change = opened.compact(whole=True)
    return {
        "parts": change.parts, "seconds": round(time.monotonic() - started, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
    }  # fmt: skip


# adds -----------------------------------------------------------------------------------------------------------------


def adds(corpus: Path, questions: Path, count: int, work: Path) -> dict[str, object]:
    """Some tables with questions and the passages that they name: built at once, in ten additions, and these compacted.

    Each question is asked of all three in turn, so that what else the machine does slows all of them.
    """
    asked = [question for question in read_questions(questions) if question.table_id]
    named = sorted({str(question.table_id) for question in asked})
    chosen = set(np.random.default_rng(1).permutation(named)[:count].tolist())
    records = list(read_corpus(corpus))
    tables = [one for one in records if isinstance(one, Table) and one.table_id in chosen]
    pages = {one.passage_id: one for one in records if isinstance(one, Passage)}
    del records
    folders = {name: work / name for name in ("built", "added", "compacted")}
    linked = {link.passage_id: pages[link.passage_id] for one in tables for link in one.hyperlinks}
    build_from(tables, linked.values(), folders["built"])
    left, index = dict(linked), None
    for batch in np.array_split(np.random.default_rng(2).permutation(len(tables)), 10):
        own = [tables[number] for number in batch.tolist()]
        new = {link.passage_id for one in own for link in one.hyperlinks} & set(left)
        texts = [left.pop(name) for name in sorted(new)]
        if index is None:
            build_from(own, texts, folders["added"])
            index = Index.open(folders["added"])
        else:
            index.add(own, texts)
    back_up(folders["added"], folders["compacted"])
    Index.open(folders["compacted"]).compact(whole=True)
    wanted = [question for question in asked if question.table_id in chosen]
    return compared(folders, wanted) | {"tables": len(tables), "passages": len(linked)}


def compared(folders: dict[str, Path], questions: list[Question]) -> dict[str, object]:
    """Measures, differences to the first with their intervals, latencies and sizes."""
    rows: dict[str, list[QuestionResult]] = {name: [] for name in folders}
    with ExitStack() as stack:
        engines = {name: stack.enter_context(Engine.open(folder)) for name, folder in folders.items()}
        for number, question in enumerate([*questions[:3], *questions]):
            for name, engine in engines.items():
                started = time.perf_counter()
                edges = ranked_edges(engine.search(question.text, k=50))
                row = measure_question(question, edges, latency_ms=1000 * (time.perf_counter() - started))
                if number >= 3:
                    rows[name].append(row)
    found: dict[str, object] = {"questions": len(questions)}
    first = next(iter(folders))
    sizes = {}
    for name, folder in folders.items():
        manifest = read_manifest(folder)
        sizes[name] = sum(entry.size for entry in manifest.listed.values())
        found[name] = {
            "parts": len(manifest.parts), "mb": round(sizes[name] / 1e6, 1), "edges": manifest.counts.edges,
            "p50_ms": round(float(np.median([row.latency_ms for row in rows[name]]))),
            "size_to_built": round(sizes[name] / sizes[first], 3),
            "p50_to_built": round(float(np.median([row.latency_ms for row in rows[name]])
                                        / np.median([row.latency_ms for row in rows[first]])), 2),
            "measures": {measure: paired(rows[name], rows[first], measure) for measure in MEASURES},
        }  # fmt: skip
    return found


def paired(rows: list[QuestionResult], others: list[QuestionResult], measure: str) -> list[float]:
    """The mean of a measure, and the interval of 95 % of what it is above that of the others: per cent."""
    pairs = [(a.values[measure], b.values[measure]) for a, b in zip(rows, others, strict=True) if measure in a.values]
    low, high = bootstrap_interval([a - b for a, b in pairs])
    return [round(100 * value, 1) for value in (float(np.mean([a for a, _ in pairs])), low, high)]


class Timed(SilentProgress):
    """Progress that keeps how long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A silent meter with a clock."""
        started = time.monotonic()
        with super().stage(name) as meter:
            yield meter
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started


def replaced(record: object, name: str) -> object:
    """The record under a new id."""
    from dataclasses import replace

    return replace(record, **{name: f"copy of {getattr(record, name)}"})  # type: ignore[type-var]


def memory_now() -> float:
    """Megabytes of memory that this process holds now, without the files that it maps."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024, 1)


def files_held(index: Path) -> int:
    """Files of an index that this process has open, and those that it maps; also ones that have no name any more."""
    place = f"{index.resolve()}/"
    opened = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            opened.append(os.readlink(descriptor))
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in maps if place in line}
    return sum(name.startswith(place) for name in opened) + len(mapped)


if __name__ == "__main__":
    main()
