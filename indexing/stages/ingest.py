"""Ingest: read the corpus in whatever format and store it for random access."""

from dataclasses import dataclass
from typing import Any

from helios.corpus import CorpusWriter, RejectsWriter, read_pieces
from helios.corpus.files import FileList, first_reason
from helios.corpus.sidecar import Sidecar
from helios.errors import CorpusError
from helios.index.durable import sha256_file
from helios.types import Table
from indexing.inputs import input_files
from indexing.stage import BuildRequest, StageContext, StageResult

REJECTS_FILE = "rejects.jsonl"
FILES_FILE = "files.jsonl"


@dataclass(frozen=True)
class IngestStage:
    """Corpus files → corpus store; beside it rejects.jsonl, and files.jsonl with what became of every file."""

    name: str = "ingest"
    version: int = 3
    component: str | None = "corpus"
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ("advanced.corpus",)
    may_be_empty: bool = False
    """Whether files that hold no record at all are no error."""

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The content of every input file, and what happens to bad records."""
        about = {"metadata": sha256_file(request.metadata)} if request.metadata else {}
        mapped = {"mapping": request.mapping.roles()} if request.mapping else {}
        return {"inputs": request.inputs_sha256, "on_error": request.on_error, **about, **mapped}

    def run(self, context: StageContext) -> StageResult:
        """Stream every record into the store; CorpusError if a file changes meanwhile."""
        request = context.request
        sidecar = Sidecar.read(request.metadata) if request.metadata else Sidecar({})
        before = input_files(request.corpus, follow_links=request.follow_links)
        size = max(1, sum(file.size for file in before))
        done = 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            context.meter.at(min(1.0, done / size))

        context.meter.start(None, "rows and passages")
        files = FileList()
        with RejectsWriter(context.keep / REJECTS_FILE) as rejects, CorpusWriter(context.out) as writer:
            for parsed in read_pieces(
                request.corpus,
                on_error=request.on_error,
                rejects=rejects,
                files=files,
                budget=context.config.advanced.corpus,
                follow_links=request.follow_links,
                mapping=request.mapping,
                progress=progress,
            ):
                record = sidecar.completed(parsed.record)
                writer.add(record, more=parsed.more)
                context.meter.advance(len(record.rows) if isinstance(record, Table) else 1)
            if not len(writer) and not self.may_be_empty:
                raise CorpusError(f"{request.corpus}: no table and no passage could be read{first_reason(files)}")
            if input_files(request.corpus, follow_links=request.follow_links) != before:
                raise CorpusError(f"{request.corpus}: a file changed while it was read; run the build again")
            rejected = rejects.count
            counts = {**writer.counts(), "rejected": rejected}
        files.write(context.keep / FILES_FILE)
        return StageResult(counts=counts)
