"""Typed settings: the defaults live here, a YAML file holds only differences, `key=value` overrides both.

    config = load_config(Path("configs/small-memory.yaml"), ["search.k=20"])
    config.search.k

A setting is a decision of a user; what was learned is a model's. What few will ever change is under `advanced`, by the
same names. To add a setting, add a field with its default and one line on what it means. One that changes what is
written into an index is named in `Stage.settings` of the stage that reads it, and in `helios.index.settings`: queries
take it from the index.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from helios.config_errors import explain
from helios.errors import ConfigError


class Section(BaseModel):
    """A frozen group of settings; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LinkingSettings(Section):
    """Where the edges of the graph come from."""

    source: Literal["linker", "hyperlinks", "none"] = "linker"
    """`linker` predicts links, `hyperlinks` takes the corpus's own (upper bound), `none` makes no edges."""


class EncoderSettings(Section):
    """The token encoder and how it runs."""

    model: str | None = None
    """Folder or hub name of the base (docs/languages.md); None takes the installed package, or the hub cache."""
    adapter: str | None = None
    """File of a trained adapter; None, or `none`, is the base as it comes."""
    runtime: Literal["auto", "openvino", "torch"] = "auto"
    """What computes; `auto` takes OpenVINO where it is installed. Rerankers run the same way."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """What reads texts to be indexed; `auto` is a CUDA GPU for a large corpus. The processor reads questions."""


class TokenSettings(Section):
    """How token vectors are stored."""

    bits: Literal[1, 2] = 1
    """Bits per dimension of a residual; 2 nearly doubles the size of the index."""


class SearchSettings(Section):
    """Edge retrieval."""

    k: int = Field(default=50, ge=1)
    """Edges of a result."""
    deadline_ms: float | None = Field(default=None, gt=0.0)
    """Time for one question, after which stages leave out what they can and say so; None is no limit."""
    context_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """The question's own share where a search is given a context (`--context`); 1 leaves the context out."""
    augmenter: str | None = None
    """Folder of an augmenter (`helios train augment`), for questions with a context over texts that no row links to."""
    ranker: str | None = None
    """Folder of a trained ranking, or `none` for the fused score alone; None is the one inside the package."""


class RerankSettings(Section):
    """The edge reranker g_e."""

    backend: Literal["none", "late-interaction", "embedded", "cross-encoder", "flag", "flag-layerwise"] = (
        "late-interaction"
    )
    """`late-interaction` is the trained encoder; others read question and text together, `embedded` is ours."""
    model: str | None = None
    """Folder (`late-interaction`), file (`embedded`), folder or hub name of g_e; None is the packaged one."""
    edges: int = Field(default=10, ge=1)
    """Edges that are read again, best first; 400 in the paper. More change nothing with the packaged models."""


class ExpansionSettings(Section):
    """Query-relevant node expansion (HELIOS 4.2)."""

    enabled: bool = True
    """Whether edges are looked for that the graph lacks."""


class RefinementSettings(Section):
    """Star-based refinement (HELIOS 4.3)."""

    mode: Literal["off", "local", "llm"] = "local"
    """`llm` asks the language model of section `llm`; `local` plans and executes without one."""

    @field_validator("mode", mode="before")
    @classmethod
    def _off(cls, mode: object) -> object:
        """YAML reads `off` as False."""
        return "off" if mode is False else mode


class ReadingSettings(Section):
    """Answers from evidence: `helios ask`."""

    reader: Literal["extractive", "llm"] = "extractive"
    """`llm` asks the model of `llm.base_url` and falls back to `extractive`."""
    least: float = Field(default=0.2, ge=0.0, le=1.0)
    """Least confidence of words of a text or a row, where rows are linked to pages about them."""


class RoutingSettings(Section):
    """Asking registered sources: `helios ask --sources`."""

    k: int = Field(default=3, ge=1, le=50)
    """Sources that are asked, at most."""


class LlmSettings(Section):
    """An optional language model behind an OpenAI-compatible server, and what a question may spend on it."""

    backend: Literal["server", "vllm"] = "server"
    """`server` is any OpenAI-compatible one; `vllm` loads the model into this process, for batch work on a GPU."""
    base_url: str | None = None
    """Such as http://localhost:8000/v1; None is no server."""
    model: str = ""
    """The model's name on that server; with `vllm` a folder or a hub name."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is never a setting."""

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, base_url: str | None) -> str | None:
        parts = urlsplit(base_url or "")
        if base_url is not None and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("expected an address that starts with http:// or https://")
        try:
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"not an address: {error}") from None
        if "@" in parts.netloc:
            raise ValueError("an address must not hold a user or a password: settings are saved; use llm.api_key_env")
        return base_url

    @property
    def configured(self) -> bool:
        """Whether there is a language model at all."""
        return bool(self.model and (self.base_url or self.backend == "vllm"))


class AdvancedLinkingSettings(Section):
    """More about links; the index depends on them."""

    model: str | None = None
    """Folder of a trained linker; None is the one inside the package."""
    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Smallest score of a link that becomes an edge; None is the model's own."""
    fuzzy: bool = False
    """Also take candidates whose titles are spelled almost like a mention that nothing else spells."""
    dense: bool = False
    """Also take candidates whose titles are near such a mention, its header and its table as vectors."""
    chunk: int = Field(default=200, ge=1)
    """Tables linked between two save points; never changes the index."""


class CorpusBudget(Section):
    """What one file of a corpus may cost; what exceeds it is rejected. The index depends on it."""

    memory_mb: int = Field(default=1536, ge=64)
    """Memory of the process that reads a file of any format but JSON lines."""
    seconds: float = Field(default=300.0, gt=0.0)
    """Time of that process until the first, and then until each next megabyte of records; of the processor's time a
    file may take a tenth of this and a second for each 10 kB, and no more than this."""
    file_mb: int = Field(default=512, ge=1)
    """A file that is read as a whole, unpacked; all files within an archive or a message together."""
    record_mb: int = Field(default=32, ge=1)
    """One line of JSON lines, or one record of a JSON file."""
    text_mb: int = Field(default=256, ge=1)
    """Text of one record, with what spans and merged cells repeat."""
    cells: int = Field(default=10_000_000, ge=1)
    """Cells of one table."""
    expansion: int = Field(default=200, ge=1)
    """Times its size that a file may unpack to, or that its records may have as text; the first 64 MB are free."""
    depth: int = Field(default=100, ge=4, le=500)
    """Brackets within brackets of JSON, levels of YAML and XML."""


class AdvancedEncoderSettings(Section):
    """More about encoding."""

    max_tokens: int = Field(default=256, ge=8, le=8192)
    """Tokens that the model reads at once; the index depends on it."""
    windows: int = Field(default=16, ge=1, le=1024)
    """Windows in which a longer row or passage is read; the build counts what it cuts. The index depends on it."""
    batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one padded batch, with torch alone."""
    centroids: int | None = Field(default=None, ge=1)
    """Centroids of the codebook; None takes their number from that of the tokens."""
    chunk: int = Field(default=2048, ge=1)
    """Nodes encoded between two save points; never changes the index."""


class AdvancedSearchSettings(Section):
    """More about edge retrieval."""

    edges: Literal["factored", "joint"] = "factored"
    """`joint` reads row and passage of the best edges as one text, without the learned ranking: for comparison."""
    joint_depth: int = Field(default=100, ge=1)
    """Edges that `joint` reads."""
    fused: str | None = None
    """Folder with the weights of the fused score; None is the packaged one."""
    probability: str | None = None
    """Folder of a trained model of what scores mean; None is the packaged one."""
    candidates: int = Field(default=2000, ge=1)
    """Edges that are kept for the later stages."""
    exact: int = Field(default=2000, ge=1)
    """Of these how many are scored from stored vectors."""
    rank_depth: int = Field(default=100, ge=1)
    """Edges that the learned ranking puts in order."""
    spread: int = Field(default=10, ge=0, le=1000)
    """First ranks in which what repeats a row or a passage is put back; 0 leaves the order as it is."""
    documents: int = Field(default=100, ge=0)
    """Texts that join by each of two scores where texts without a row are put in order; 0 leaves that stage out."""
    filters: int = Field(default=16, ge=1)
    """Filters whose view of the index is kept for the next question."""
    verify: bool = False
    """Check every file when an index is opened, a second a gigabyte; otherwise all but large payload at first use."""


class AdvancedRerankSettings(Section):
    """More about rerankers; each belongs to some backends, and setting it for another one is an error."""

    cache_mb: int = Field(default=64, ge=0)
    """`late-interaction`: memory for vectors of nodes that were read, for the next question."""
    within: float = Field(default=5.0, ge=0.0)
    """`late-interaction`: an edge is read if it is no more than these log-odds below the best one."""
    tokens: int = Field(default=1800, ge=0)
    """`late-interaction`: tokens that are read for a question; the best two edges are read however long they are."""
    weight: float = Field(default=0.25, ge=0.0)
    """Pairs: how much of the reranker's logit is added to the log-odds of retrieval."""
    deadline_ms: float | None = Field(default=600.0, gt=0.0)
    """Pairs: time for one question; what is not read by then is as good as retrieval found it."""
    max_tokens: int = Field(default=160, ge=32, le=8192)
    """Pairs: tokens of question and text together."""
    batch_tokens: int = Field(default=1024, ge=64)
    """Pairs: tokens of one padded batch; a deadline can end reranking between batches."""
    nodes: int = Field(default=0, ge=0)
    """Pairs: nodes that g_n reads where expansion is on, best first, to choose seeds; 0 leaves g_n out."""
    node_model: str | None = None
    """Pairs: g_n, as `rerank.model` is g_e."""
    layer: int = Field(default=24, ge=1)
    """`flag-layerwise`: the layer of the model that gives the score."""


PAIR_BACKENDS = ("embedded", "cross-encoder", "flag", "flag-layerwise")
RERANK_BACKENDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("weight", "deadline_ms", "max_tokens", "batch_tokens", "nodes", "node_model"), PAIR_BACKENDS),
    **dict.fromkeys(("cache_mb", "within", "tokens"), ("late-interaction",)),
    "layer": ("flag-layerwise",),
}
"""Which backends a setting of `advanced.rerank` belongs to."""

RENAMED: Mapping[str, str] = {
    "tokens.centroids": "advanced.encoder.centroids",
    "rerank.edge_model": "rerank.model",
    "rerank.k1": "rerank.edges",
    "rerank.runtime": "encoder.runtime",
    "reading.min_confidence": "reading.least",
    "reading.presence.least": "advanced.reading.present",
    "spread.depth": "advanced.search.spread",
    "pipeline.link_chunk": "advanced.linking.chunk",
    "pipeline.encode_chunk": "advanced.encoder.chunk",
}
"""What settings of version 0.1 are called now; of those that only moved, `section.key` is `advanced.section.key`."""
GONE: Mapping[str, str] = {
    **dict.fromkeys(
        ("search.segment_weight", "search.star_weight", "search.lexical_weight", "search.bm25_k1", "search.bm25_b"),
        "it is in the model of the fused score, whose folder advanced.search.fused names",
    ),
    **dict.fromkeys(("spread.row", "spread.passage"), "it is learned, and inside the package"),
    **dict.fromkeys(
        ("reading.presence.coverage", "reading.presence.score", "reading.presence.intercept"),
        "it is learned, and inside the package",
    ),
    "rerank.k2": "a search gives search.k edges",
}
"""Settings of version 0.1 that are none any more, and why."""


class AdvancedExpansionSettings(Section):
    """More about node expansion."""

    beam: int = Field(default=10, ge=0, le=1000)
    """New edges a question; 0 leaves expansion out."""
    seeds: int = Field(default=16, ge=1, le=100)
    """Best rows whose new neighbours are looked for."""
    tables: int = Field(default=6, ge=0, le=50)
    """Best tables, all of whose rows are looked from."""
    within: float = Field(default=3.0, ge=0.0)
    """Log-odds below the best row up to which rows and tables are looked from."""
    model: str | None = None
    """Folder of a trained pair model; None is the one inside the package."""


class AdvancedRefinementSettings(Section):
    """More about refinement."""

    tables: int = Field(default=3, ge=1)
    """Whole tables, in the order of their best edge, over which an aggregation is executed."""
    detect: float = Field(default=0.0, ge=0.0, le=1.0)
    """Probability of an aggregation question from which tables are restored at all."""
    believe: float = Field(default=0.2, ge=0.0, le=1.0)
    """Probability of the best plan from which its result is told, with the cells that it compared."""
    verify: float = Field(default=0.0, ge=0.0, le=1.0)
    """Edges that are evidence with less than this probability come last; 0 rejects none; without a ranker try 0.005."""
    prompting: Literal["star", "graph"] = "star"
    """With `llm`: prompts about a table and `rows` stars at a time, or one for the whole graph (HELIOS 5.3)."""
    gate: float = Field(default=0.9, ge=0.0, le=1.0)
    """With `llm`: confidence in the best star that spares the model, unless it aggregates; 1 asks always."""
    stars: int = Field(default=10, ge=1)
    """With `llm`: stars whose passages are verified at most, the best ones."""
    rows: int = Field(default=5, ge=1)
    """With `llm`: stars in one prompt of verification."""


class AdvancedReadingSettings(Section):
    """More about reading."""

    model: str | None = None
    """Folder of a trained extractive reader; None is the packaged one."""
    table_model: str | None = None
    """Folder of a trained reader of tables, one of passages, the choice; None is the packaged one, `none` none."""
    passage_model: str | None = None
    queries: bool = True
    """Also ask the tables of the evidence in SQL, as databases are asked: joins, groups, sums."""
    whether: bool = True
    """Also answer yes or no from the sentence or row that is nearest to a question of that kind."""
    choice: str | None = None
    least_read: float = Field(default=0.5, ge=0.0, le=1.0)
    """The same of all other answers: what is likelier wrong than right is not given."""
    edges: int = Field(default=10, ge=1)
    """Best edges that the extractive reader reads."""
    present: float = Field(default=0.025, ge=0.0, le=1.0)
    """It says no span where the corpus holds the answer with less than this: 2 % of train questions that have one."""


class AdvancedRoutingSettings(Section):
    """More about asking sources."""

    repairs: int = Field(default=2, ge=0, le=10)
    """Other queries that are tried after one that failed or gave nothing."""
    sql_confidence: float = Field(default=0.65, ge=0.0, le=1.0)
    """Confidence from which SQL made without a language model is run; below it there is keyword evidence."""
    sparql_confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    cypher_confidence: float = Field(default=0.6, ge=0.0, le=1.0)
    tables: bool = True
    """Also read a database or graph of up to 100,000 cells as tables, whose columns a question need not name."""
    source_seconds: float = Field(default=30.0, gt=0.0)
    """Deadline of one source, with formulation and repairs."""
    evidence: int = Field(default=20, ge=1)
    """Pieces of evidence that are kept."""


class AdvancedLlmSettings(Section):
    """Limits of the language model."""

    context_tokens: int | None = Field(default=None, ge=512)
    """With `vllm`: longest prompt and reply together; None is what the model can take."""
    gpus: int = Field(default=1, ge=1)
    """With `vllm`: GPUs that share the model."""
    concurrency: int = Field(default=8, ge=1)
    """Calls under way at the same moment, for all questions together."""
    call_seconds: float = Field(default=20.0, gt=0.0)
    """Deadline of one call."""
    question_calls: int = Field(default=12, ge=1)
    """Calls for one question, second tries included; after them local stages take over, and a note says so."""
    question_tokens: int = Field(default=40_000, ge=1)
    """Tokens for one question, prompts and replies; a call that may take more than is left is not sent."""
    question_seconds: float = Field(default=60.0, gt=0.0)
    evidence_tokens: int = Field(default=2500, ge=200)
    """Tokens of tables, rows and passages in one prompt."""
    prompt_tokens: int = Field(default=6000, ge=200)
    """Tokens of the description of one source, for a query; the catalogue of all sources has twice as many."""
    reply_tokens: int = Field(default=512, ge=16)
    """Most tokens of one reply."""
    cache: str | None = None
    """File that keeps replies for the next time; None keeps none."""
    cache_entries: int = Field(default=100_000, ge=1)
    """Newest replies kept in that file."""


class LanguageModelSettings(AdvancedLlmSettings, LlmSettings):
    """All that a client of a language model needs: section `llm` and its limits in `advanced.llm`."""


class AdvancedSettings(Section):
    """What hardly anyone needs to change."""

    linking: AdvancedLinkingSettings = AdvancedLinkingSettings()
    encoder: AdvancedEncoderSettings = AdvancedEncoderSettings()
    search: AdvancedSearchSettings = AdvancedSearchSettings()
    rerank: AdvancedRerankSettings = AdvancedRerankSettings()
    expansion: AdvancedExpansionSettings = AdvancedExpansionSettings()
    refinement: AdvancedRefinementSettings = AdvancedRefinementSettings()
    reading: AdvancedReadingSettings = AdvancedReadingSettings()
    routing: AdvancedRoutingSettings = AdvancedRoutingSettings()
    llm: AdvancedLlmSettings = AdvancedLlmSettings()
    corpus: CorpusBudget = CorpusBudget()


class Config(Section):
    """All settings, one section per concern."""

    linking: LinkingSettings = LinkingSettings()
    encoder: EncoderSettings = EncoderSettings()
    tokens: TokenSettings = TokenSettings()
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    expansion: ExpansionSettings = ExpansionSettings()
    refinement: RefinementSettings = RefinementSettings()
    reading: ReadingSettings = ReadingSettings()
    llm: LlmSettings = LlmSettings()
    routing: RoutingSettings = RoutingSettings()
    advanced: AdvancedSettings = AdvancedSettings()

    @property
    def language_model(self) -> LanguageModelSettings:
        """Section `llm` with its limits."""
        return LanguageModelSettings(**self.llm.model_dump(), **self.advanced.llm.model_dump())

    @model_validator(mode="after")
    def _rerank_settings_are_read(self) -> "Config":
        """A setting that the chosen reranker ignores was meant for another one; its default is meant for nobody."""
        backend = self.rerank.backend
        for name in sorted(_changed(self.advanced.rerank)):
            if backend not in RERANK_BACKENDS[name]:
                others = ", ".join(RERANK_BACKENDS[name])
                raise ValueError(f"advanced.rerank.{name} is for {others}; rerank.backend={backend} ignores it")
        if backend == "none" and _changed(self.rerank) & {"model", "edges"}:
            raise ValueError("rerank.backend=none ignores rerank.model and rerank.edges")
        return self

    def resolved(self) -> dict[str, Any]:
        """Every setting with its value, as plain JSON data: saved with every artifact."""
        return self.model_dump(mode="json")

    def changed(self, overrides: Sequence[str]) -> "Config":
        """These settings with some that differ, as `section.key=value`; ConfigError as `load_config` raises it."""
        return _overridden(self.model_dump(exclude_unset=True), {}, overrides)

    def select(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of sections (`linking`) or single settings (`tokens.bits`), by their dotted keys."""
        resolved = self.resolved()
        return {key: lookup(resolved, key) for key in keys}


def _changed(section: Section) -> set[str]:
    """Names of the settings of a section that differ from their defaults."""
    fields = type(section).model_fields
    return {name for name in section.model_fields_set if getattr(section, name) != fields[name].default}


def load_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> Config:
    """Defaults, then the YAML file, then `section.key=value` overrides; raises ConfigError naming the key."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, value in _yaml_settings(Path(path)) if path else ():
        store(values, key, value)
        sources[key] = str(path)
    return _overridden(values, sources, overrides)


def _overridden(values: dict[str, Any], sources: dict[str, str], overrides: Sequence[str]) -> Config:
    """Settings as they were given, by their `sources`, with overrides."""
    for override in overrides:
        key, value = parse_override(override)
        store(values, key, value)
        sources[key] = f"override {override!r}"
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, sources)) from None


def parse_override(text: str) -> tuple[str, Any]:
    """`search.k=20` → ("search.k", 20); the value is read as YAML."""
    key, equals, raw = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"override {text!r}: expected section.key=value, for example search.k=20")
    try:
        value = yaml.safe_load(raw) if raw.strip() else None
    except yaml.YAMLError as error:
        raise ConfigError(f"override {text!r}: the value is not valid YAML ({_where(error)})") from None
    if isinstance(value, Mapping):
        raise ConfigError(f"override {text!r}: give one setting per override, as section.key=value")
    _check_known(key, f"override {text!r}", leaf=True)
    return key, value


def known_keys() -> list[str]:
    """Dotted names of all settings, in order of definition."""
    return list(_keys(Config, ""))


def _keys(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _keys(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _yaml_settings(path: Path) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) pairs of a YAML file, checked to be known."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the config ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML ({_where(error)})") from None
    if document is None:
        return
    if not isinstance(document, Mapping):
        raise ConfigError(f"{path}: expected a mapping of sections, got {type(document).__name__}")
    yield from _flatten(document, "", path)


def _flatten(mapping: Mapping[Any, Any], prefix: str, path: Path) -> Iterator[tuple[str, Any]]:
    leaves = (*known_keys(), *RENAMED, *GONE)
    sections = {key[:dot] for key in leaves for dot, letter in enumerate(key) if letter == "."}
    for name, value in mapping.items():
        key = f"{prefix}{name}"
        if key in sections and isinstance(value, Mapping):
            yield from _flatten(value, f"{key}.", path)
        elif key in sections and value is None:
            continue
        else:
            _check_known(key, str(path), leaf=True)
            yield key, value


def _check_known(key: str, source: str, *, leaf: bool) -> None:
    keys = known_keys()
    if key in keys:
        return
    inside = [known for known in keys if known.startswith(f"{key}.")]
    if inside and leaf:
        raise ConfigError(f"{source}: {key!r} is a section; set one of {', '.join(inside)}")
    if key in GONE:
        raise ConfigError(f"{source}: {key!r} is no setting any more: {GONE[key]}")
    if (now := RENAMED.get(key, f"advanced.{key}")) in keys:
        raise ConfigError(f"{source}: {key!r} is now called {now!r}")
    near = _nearest(key, keys)
    shown = f"did you mean {' or '.join(near)}?" if near else f"the nearest are {', '.join(_alike(key, keys))}"
    hint = f"{shown}{'' if near else '; docs/reference.md has all of them'}"
    raise ConfigError(f"{source}: unknown setting {key!r}; {hint}")


def _nearest(key: str, keys: Sequence[str]) -> list[str]:
    """Up to three known keys: the same name in another section, then similar spellings."""
    leaf = key.rpartition(".")[2]
    same = [known for known in keys if known.rpartition(".")[2] == leaf]
    alike = difflib.get_close_matches(key, keys, n=3, cutoff=0.6)
    leaves = {known: known.rpartition(".")[2] for known in keys}
    close = [known for known, name in leaves.items() if difflib.SequenceMatcher(None, leaf, name).ratio() > 0.75]
    return list(dict.fromkeys([*same, *alike, *close]))[:3]


def store(values: dict[str, Any], key: str, value: Any) -> None:
    """Put a value under a dotted key, in place."""
    *sections, leaf = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[leaf] = value


def lookup(values: Mapping[str, Any], key: str) -> Any:
    """The value or the section under a dotted key; KeyError where there is none."""
    found: Any = values
    for name in key.split("."):
        if not isinstance(found, Mapping) or name not in found:
            raise KeyError(f"no setting or section named {key!r}")
        found = found[name]
    return found


def _alike(key: str, keys: Sequence[str]) -> list[str]:
    """The five known keys that are spelt most like it, however little."""
    return sorted(keys, key=lambda known: -difflib.SequenceMatcher(None, key, known).ratio())[:5]


def _where(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {reason}" if mark else reason
