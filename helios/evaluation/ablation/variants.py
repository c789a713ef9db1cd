"""What an ablation compares: variants of the search, in groups, each with the method that gives its ranked lists."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from helios.config import (
    AdvancedExpansionSettings,
    AdvancedLlmSettings,
    AdvancedRefinementSettings,
    AdvancedRerankSettings,
    Config,
    ExpansionSettings,
    LlmSettings,
    RerankSettings,
    Section,
)
from helios.evaluation.units import RetrievalUnit

FULL = "full"
"""The variant that all others are compared with: the search as the settings have it."""
BEAMS = (0, 5, 10, 20, 50)


class Group(StrEnum):
    """What is varied (HELIOS: 5.2 and Table 5, 4.1, 5.3 and Table 6, 4.2, 5.3)."""

    STAGES = "stages"
    EDGES = "edges"
    UNITS = "units"
    BEAM = "beam"
    PROMPTS = "prompts"


class Encoding(StrEnum):
    """How the tokens of an edge become vectors."""

    STORED = "stored"
    """Its nodes apart, as the index holds them: quantised."""
    FACTORED = "factored"
    """Its nodes apart, not quantised."""
    JOINT = "joint"
    """Both nodes as one text, not quantised."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The whole search with these settings."""

    config: Config


@dataclass(frozen=True, slots=True)
class EncodedEdges:
    """The best factored candidates in the order of one encoding's MaxSim, alone or fused with row, star and BM25."""

    encoding: Encoding
    fused: bool


@dataclass(frozen=True, slots=True)
class UnitSearch:
    """Late interaction alone over one retrieval unit."""

    unit: RetrievalUnit


Method = Pipeline | EncodedEdges | UnitSearch


@dataclass(frozen=True, slots=True)
class Variant:
    """A row of an ablation; `method` None is a row that cannot be run, and `note` says why."""

    group: Group | None
    """None is the full search."""
    name: str
    method: Method | None
    versus: str = ""
    """The variant that this one is compared with beside the full search, by its name."""
    note: str = ""


def parse_groups(text: str) -> list[Group]:
    """`stages,edges` or `all`; ValueError for anything else."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return list(Group)
    known = [group.value for group in Group]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"unknown: {', '.join(unknown)}; " if unknown else ""
        raise ValueError(f"{wrong}expected all, or some of {','.join(known)}")
    return [group for group in Group if group.value in names]


def ablation_variants(config: Config, groups: Collection[Group]) -> tuple[Variant, ...]:
    """The full search, then the variants of the groups in the order of `Group`."""
    makers = {
        Group.STAGES: _stages,
        Group.EDGES: _edges,
        Group.UNITS: _units,
        Group.BEAM: _beams,
        Group.PROMPTS: _prompts,
    }
    rows = [Variant(None, FULL, _pipeline(config))]
    for group in Group:
        if group in groups:
            rows += makers[group](config)
    return tuple(rows)


def method_settings(method: Method) -> dict[str, Any]:
    """A method as plain JSON data: its kind and all that its rankings depend on."""
    match method:
        case Pipeline(config):
            return {"kind": "pipeline", "config": config.resolved()}
        case EncodedEdges(encoding, fused):
            return {"kind": "edges", "encoding": encoding.value, "fused": fused}
        case UnitSearch(unit):
            return {"kind": "unit", "unit": unit.value}


def _stages(config: Config) -> Iterator[Variant]:
    off = {
        "reranker": ("rerank.backend=none",),
        "expansion": ("expansion.enabled=false",),
        "refinement": ("refinement.mode=off",),
        "spread": ("advanced.search.spread=0",),
    }
    full = _pipeline(config)
    for stage, overrides in off.items():
        without = _pipeline(_plain(config, stage).changed(overrides))
        note = f"{stage} is off in these settings: the same as {FULL}" if without == full else ""
        yield Variant(Group.STAGES, f"no {stage}", without, note=note)
    alone = _plain(config, "reranker").changed([override for overrides in off.values() for override in overrides])
    yield Variant(Group.STAGES, "retrieval alone", _pipeline(alone))


def _plain(config: Config, stage: str) -> Config:
    """Settings without those of a reranker that is to be left out, which would be an error without it."""
    if stage != "reranker":
        return config
    plain = config.advanced.model_copy(update={"rerank": AdvancedRerankSettings()})
    return config.model_copy(update={"rerank": RerankSettings(), "advanced": plain})


def _edges(config: Config) -> Iterator[Variant]:
    for fused in (False, True):
        score = "fused" if fused else "MaxSim"
        for encoding in Encoding:
            versus = "" if encoding is Encoding.FACTORED else f"{Encoding.FACTORED.value} {score}"
            yield Variant(Group.EDGES, f"{encoding.value} {score}", EncodedEdges(encoding, fused), versus)


def _units(config: Config) -> Iterator[Variant]:
    for unit in RetrievalUnit:
        versus = "" if unit is RetrievalUnit.EDGE else f"{RetrievalUnit.EDGE.value} units"
        yield Variant(Group.UNITS, f"{unit.value} units", UnitSearch(unit), versus)


def _beams(config: Config) -> Iterator[Variant]:
    for beam in BEAMS:
        changed = config.changed(["expansion.enabled=true", f"advanced.expansion.beam={beam}"])
        yield Variant(Group.BEAM, f"beam {beam}", _pipeline(changed))


def _prompts(config: Config) -> Iterator[Variant]:
    for prompting, name, versus in (("star", "star prompts", "graph prompt"), ("graph", "graph prompt", "")):
        if config.llm.base_url is None:
            note = "not run, for it needs a language model: set llm.base_url and llm.model"
            yield Variant(Group.PROMPTS, name, None, note=note)
            continue
        changed = config.changed(["refinement.mode=llm", f"advanced.refinement.prompting={prompting}"])
        yield Variant(Group.PROMPTS, name, _pipeline(changed), versus)


def _pipeline(config: Config) -> Pipeline:
    """The search, without the settings of what is off: searches that do the same are equal, and run once."""
    changes: dict[str, Section] = {}
    advanced: dict[str, Section] = {}
    if config.rerank.backend == "none":
        changes["rerank"] = RerankSettings(backend="none")
        advanced["rerank"] = AdvancedRerankSettings()
    if not config.expansion.enabled or config.advanced.expansion.beam == 0:
        changes["expansion"] = ExpansionSettings(enabled=False)
        advanced["expansion"] = AdvancedExpansionSettings()
    if config.refinement.mode == "off":
        advanced["refinement"] = AdvancedRefinementSettings()
    if config.refinement.mode != "llm":
        changes["llm"] = LlmSettings()
        advanced["llm"] = AdvancedLlmSettings()
    changes["advanced"] = config.advanced.model_copy(update=advanced)
    return Pipeline(config.model_copy(update=changes))
