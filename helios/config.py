"""Typed settings: the defaults live here, a YAML file holds only differences, `key=value` overrides both.

    config = load_config(Path("configs/small.yaml"), ["search.k=20"])
    config.search.k

To add a setting, add a field with its default and one line on what it means. A setting that changes what
is written into an index belongs to a section named in `Stage.settings` of the stage that reads it, and in
`helios.index.settings`: queries take it from the index.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from helios.errors import ConfigError


class Section(BaseModel):
    """A frozen group of settings; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LinkingSettings(Section):
    """Where the edges of the graph come from."""

    source: Literal["linker", "hyperlinks", "none"] = "linker"
    """`linker` predicts links, `hyperlinks` takes the corpus's own (upper bound), `none` makes no edges."""
    model: str | None = None
    """Folder of a trained linker; None is the one inside the package."""
    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Smallest score of a link that becomes an edge; None is the model's own."""
    fuzzy: bool = False
    """Also take candidates whose titles are spelled almost like a mention that nothing else spells."""
    dense: bool = False
    """Also take candidates whose titles are near such a mention, its header and its table as vectors."""


class EncoderSettings(Section):
    """The token encoder and how it runs."""

    model: str | None = None
    """Folder of the base model; None searches the hub cache, then the installed package."""
    adapter: str | None = None
    """File of a trained adapter, or `none`; None is the one inside the package."""
    runtime: Literal["auto", "openvino", "torch"] = "auto"
    max_tokens: int = Field(default=256, ge=8, le=8192)
    """Tokens kept of one node; the rest is cut off."""
    batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one padded batch."""


class TokenSettings(Section):
    """How token vectors are stored."""

    bits: Literal[1, 2] = 1
    """Bits per dimension of a residual; 2 nearly doubles the size of the index."""
    centroids: int | None = Field(default=None, ge=1)
    """Number of centroids; None takes it from the number of tokens."""


class SearchSettings(Section):
    """Edge retrieval."""

    k: int = Field(default=50, ge=1)
    edges: Literal["factored", "joint"] = "factored"
    """`joint` reads row and passage of the best edges as one text, without the learned ranking: for comparison."""
    joint_depth: int = Field(default=100, ge=1)
    """Edges that `joint` reads."""
    candidates: int = Field(default=2000, ge=1)
    """Edges whose bounds are checked by exact scoring."""
    segment_weight: float = Field(default=0.4, ge=0.0)
    """What the MaxSim of an edge's row alone adds to that of the edge."""
    star_weight: float = Field(default=0.4, ge=0.0)
    """What the MaxSim of the row with all its passages adds."""
    lexical_weight: float = Field(default=0.05, ge=0.0)
    """What BM25 of the edge adds."""
    ranker: str | None = None
    """Folder of a trained ranking, or `none` for the fused score alone; None is the one inside the package."""
    rank_depth: int = Field(default=100, ge=1)
    """Edges that the learned ranking puts in order."""
    bm25_k1: float = Field(default=0.9, ge=0.0)
    bm25_b: float = Field(default=0.4, ge=0.0, le=1.0)


class RerankSettings(Section):
    """Edge reranker g_e and node reranker g_n."""

    backend: Literal["none", "late-interaction", "embedded", "cross-encoder", "flag", "flag-layerwise"] = (
        "late-interaction"
    )
    """`late-interaction` reads nodes with the trained token encoder, and needs the learned ranking of a factored
    search; the others read a question and a text together: `embedded` is our cross-encoder, the rest load a model of
    sentence-transformers or FlagEmbedding."""
    edge_model: str | None = None
    """Folder (`late-interaction`), file (`embedded`), folder or hub name of g_e; None is the packaged one."""
    node_model: str | None = None
    """The same for g_n."""
    runtime: Literal["auto", "openvino", "torch"] = "auto"
    k1: int = Field(default=10, ge=1)
    """Edges that are read again, best first; 400 in the paper. More change nothing with the packaged models."""
    nodes: int = Field(default=0, ge=0)
    """Nodes that g_n reads where expansion is on, best first, to choose seeds; 0, the default, leaves g_n out: the
    packaged one finds a few gold nodes in a thousand more."""
    k2: int = Field(default=100, ge=1)
    """Edges that are kept."""
    weight: float = Field(default=0.25, ge=0.0)
    """How much of the reranker's logit is added to that of retrieval; chosen for the packaged ones on held-out
    questions."""
    max_tokens: int = Field(default=160, ge=32, le=8192)
    """Tokens of question and text together."""
    batch_tokens: int = Field(default=1024, ge=64)
    """Tokens of one padded batch: a deadline can end reranking between batches."""
    layer: int = Field(default=24, ge=1)
    """The layer of a layer-wise model that gives the score."""
    deadline_ms: float | None = Field(default=600.0, gt=0.0)
    """Time for the pairs of one question; what is not read by then is as good as retrieval found it. Late interaction,
    which reads few and short texts, takes the time that it needs."""


class ExpansionSettings(Section):
    """Query-relevant node expansion (HELIOS 4.2)."""

    enabled: bool = True
    beam: int = Field(default=10, ge=0, le=1000)
    """New edges a question; 0 leaves expansion out."""
    seeds: int = Field(default=16, ge=1, le=100)
    """Best rows whose new neighbours are looked for."""
    tables: int = Field(default=6, ge=0, le=50)
    """Best tables, all of whose rows are looked from."""
    model: str | None = None
    """Folder of a trained pair model; None is the one inside the package."""


class PresenceSettings(Section):
    """The chance that a corpus holds what a question asks for; written by `helios train presence`."""

    coverage: float = 7.66
    """Log-odds for the share of the question that one edge covers at best, 0 to 1: the mean of its tokens' best
    cosines, the rarer the heavier."""
    score: float = 1.637
    """Log-odds for one unit of the highest log-odds of an edge."""
    intercept: float = -5.08
    least: float = Field(default=0.16, ge=0.0, le=1.0)
    """The extractive reader abstains below this: two of a hundred train questions whose answer is there."""


class ReadingSettings(Section):
    """Answers from evidence: `helios ask`."""

    reader: Literal["extractive", "llm"] = "extractive"
    """`llm` asks the model of `llm.base_url` and falls back to `extractive`."""
    model: str | None = None
    """Folder of a trained extractive reader; None is the packaged one."""
    edges: int = Field(default=10, ge=1)
    """Best edges that the extractive reader reads."""
    min_confidence: float = Field(default=0.08, ge=0.0, le=1.0)
    """The extractive reader abstains below this: fewer than one in ten such answers are right on train questions that
    it has not seen (training.abstention)."""
    presence: PresenceSettings = PresenceSettings()
    """It abstains too where the corpus hardly holds what is asked for."""


class RefinementSettings(Section):
    """Star-based refinement (HELIOS 4.3)."""

    mode: Literal["off", "local", "llm"] = "local"
    """`llm` asks the language model of section `llm`; `local` plans and executes without one."""
    tables: int = Field(default=3, ge=1)
    """Whole tables, in the order of their best edge, over which an aggregation is executed."""
    detect: float = Field(default=0.0, ge=0.0, le=1.0)
    """Probability of an aggregation question from which tables are restored at all."""
    believe: float = Field(default=0.2, ge=0.0, le=1.0)
    """Probability of the best plan from which its result is told, with the cells that it compared."""
    verify: float = Field(default=0.0, ge=0.0, le=1.0)
    """Edges that are evidence with less than this probability move behind the others; 0 moves none. The learned
    ranking knows of an edge all that verification does: without one (search.ranker=none), try 0.005."""
    prompting: Literal["star", "graph"] = "star"
    """With `llm`: one prompt for every star, or one for the whole graph (the comparison of HELIOS 5.3)."""
    gate: float = Field(default=0.9, ge=0.0, le=1.0)
    """With `llm`: confidence in the best star from which on the model is not asked, unless the question is likely an
    aggregation; 1 asks always."""
    stars: int = Field(default=32, ge=1)
    """With `llm`: stars whose passages are verified, the best ones."""

    @field_validator("mode", mode="before")
    @classmethod
    def _off(cls, mode: object) -> object:
        """YAML reads `off` as False."""
        return "off" if mode is False else mode


class SpreadSettings(Section):
    """Best edges that repeat a better one's row or passage stand lower; with scores in log-odds alone.

    The prices were learned on train questions (`helios train spread`).
    """

    depth: int = Field(default=10, ge=0, le=1000)
    """Ranks that are filled so; 0 leaves the order as it is."""
    row: float = Field(default=0.65, ge=0.0)
    """What an edge loses, in log-odds, where a better one has its row."""
    passage: float = Field(default=1.03, ge=0.0)
    """What an edge loses where a better one has its passage."""


class RoutingSettings(Section):
    """Asking registered sources: `helios ask --sources`."""

    k: int = Field(default=3, ge=1, le=50)
    """Sources that are asked, at most."""
    repairs: int = Field(default=2, ge=0, le=10)
    """Other queries that are tried after one that failed or gave nothing."""
    sql_confidence: float = Field(default=0.65, ge=0.0, le=1.0)
    """Confidence from which SQL made without a language model is run; below it there is keyword evidence."""
    sparql_confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    cypher_confidence: float = Field(default=0.7, ge=0.0, le=1.0)
    source_seconds: float = Field(default=30.0, gt=0.0)
    """Deadline of one source, with formulation and repairs."""
    evidence: int = Field(default=20, ge=1)
    """Pieces of evidence that are kept."""


class PipelineSettings(Section):
    """How work is cut into pieces; changes speed and memory, never the index."""

    link_chunk: int = Field(default=200, ge=1)
    """Tables linked between two save points."""
    encode_chunk: int = Field(default=2048, ge=1)
    """Nodes encoded between two save points."""


class LlmSettings(Section):
    """An optional language model behind an OpenAI-compatible server, and what a question may spend on it."""

    backend: Literal["server", "vllm"] = "server"
    """`server` is any OpenAI-compatible one; `vllm` loads the model into this process, for batch work on a GPU."""
    base_url: str | None = None
    """Such as http://localhost:8000/v1; None is no server."""
    model: str = ""
    """The model's name on that server; with `vllm` a folder or a hub name."""
    context_tokens: int | None = Field(default=None, ge=512)
    """With `vllm`: longest prompt and reply together; None is what the model can take."""
    gpus: int = Field(default=1, ge=1)
    """With `vllm`: GPUs that share the model."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is never a setting."""
    concurrency: int = Field(default=8, ge=1)
    """Calls under way at the same moment, for all questions together."""
    call_seconds: float = Field(default=20.0, gt=0.0)
    """Deadline of one call."""
    question_calls: int = Field(default=64, ge=1)
    """Calls for one question, second tries included."""
    question_tokens: int = Field(default=200_000, ge=1)
    """Tokens for one question, prompts and replies."""
    question_seconds: float = Field(default=60.0, gt=0.0)
    prompt_tokens: int = Field(default=6000, ge=200)
    """Tokens that tables and passages are packed into for one prompt."""
    reply_tokens: int = Field(default=512, ge=16)
    """Most tokens of one reply."""
    cache: str | None = None
    """File that keeps replies for the next time; None keeps none."""
    cache_entries: int = Field(default=100_000, ge=1)
    """Newest replies kept in that file."""

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


class Config(Section):
    """All settings, one section per concern."""

    linking: LinkingSettings = LinkingSettings()
    encoder: EncoderSettings = EncoderSettings()
    tokens: TokenSettings = TokenSettings()
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    reading: ReadingSettings = ReadingSettings()
    expansion: ExpansionSettings = ExpansionSettings()
    refinement: RefinementSettings = RefinementSettings()
    spread: SpreadSettings = SpreadSettings()
    pipeline: PipelineSettings = PipelineSettings()
    llm: LlmSettings = LlmSettings()
    routing: RoutingSettings = RoutingSettings()

    def resolved(self) -> dict[str, Any]:
        """Every setting with its value, as plain JSON data: saved with every artifact."""
        return self.model_dump(mode="json")

    def select(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of sections (`linking`) or single settings (`tokens.bits`), by their dotted keys."""
        resolved = self.resolved()
        return {key: _lookup(resolved, key) for key in keys}


def load_config(path: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """Defaults, then the YAML file, then `section.key=value` overrides; raises ConfigError naming the key."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, value in _yaml_settings(path) if path else ():
        _store(values, key, value)
        sources[key] = str(path)
    for override in overrides:
        key, value = parse_override(override)
        _store(values, key, value)
        sources[key] = f"override {override!r}"
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, sources)) from None


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
    sections = {key.rpartition(".")[0] for key in known_keys()}
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
    near = _nearest(key, keys)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(keys)}"
    raise ConfigError(f"{source}: unknown setting {key!r}; {hint}")


def _nearest(key: str, keys: Sequence[str]) -> list[str]:
    """Up to three known keys: the same name in another section, then similar spellings."""
    leaf = key.rpartition(".")[2]
    same = [known for known in keys if known.rpartition(".")[2] == leaf]
    alike = difflib.get_close_matches(key, keys, n=3, cutoff=0.6)
    leaves = {known: known.rpartition(".")[2] for known in keys}
    close = [known for known, name in leaves.items() if difflib.SequenceMatcher(None, leaf, name).ratio() > 0.75]
    return list(dict.fromkeys([*same, *alike, *close]))[:3]


def _store(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, leaf = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[leaf] = value


def _lookup(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for name in key.split("."):
        if not isinstance(found, Mapping) or name not in found:
            raise KeyError(f"no setting or section named {key!r}")
        found = found[name]
    return found


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    """One line per wrong value: where it was set, its key, what was expected and what was given."""
    lines: dict[str, str] = {}
    for problem in error.errors():
        names = [str(part) for part in problem["loc"]]
        key = next((key for key in sources if key == ".".join(names[: key.count(".") + 1])), ".".join(names))
        message = re.sub(r"^Input should be", "expected", problem["msg"])
        source = sources.get(key, "config")
        lines.setdefault(key, f"{source}: {key}: {message}, got {problem['input']!r}")
    return "\n".join(lines.values())


def _where(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {reason}" if mark else reason
