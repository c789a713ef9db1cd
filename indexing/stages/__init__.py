"""The stages of the pipeline, one file each, in the order in which they run."""

from indexing.stage import Stage
from indexing.stages.encode import CodebookStage, EncodeStage
from indexing.stages.graph import GraphStage
from indexing.stages.ingest import IngestStage
from indexing.stages.lexical import LexicalStage
from indexing.stages.link import LinkStage

__all__ = ["CodebookStage", "EncodeStage", "GraphStage", "IngestStage", "LexicalStage", "LinkStage", "default_stages"]


def default_stages() -> tuple[Stage, ...]:
    """Every stage that a complete index needs; a stage may read only those before it."""
    return (IngestStage(), LinkStage(), GraphStage(), CodebookStage(), EncodeStage(), LexicalStage())
