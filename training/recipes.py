"""Recipe files: typed settings of one role, a YAML file of differences, and `key=value` on top.

A role's module holds a `ROLE`; its settings class has whatever the role needs, usually with sections `data` and
`train`:

    class RerankerSettings(Section):
        data: DataSettings = DataSettings()
        train: TrainSettings = TrainSettings(epochs=2)
        pool: int = 40

    ROLE = Role(RerankerSettings, train_reranker)
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError

from helios.config import Section
from helios.errors import ConfigError
from helios.extras import installation
from training.errors import TrainingError
from training.log import LogRow

Settings = TypeVar("Settings", bound=Section)

ROLES = {
    "fused": ("training.fused", "Fused score: what it is worth as log-odds, before any learned ranking."),
    "ranker": ("training.ranker", "Learned ranking of edges, from features of what the engine finds."),
    "encoder": ("training.encoder", "Token encoder f_e, factored or joint."),
    "late-reranker": ("training.late_reranker", "Late-interaction reranker: the order of edges read by an encoder."),
    "expander": ("training.expander", "Pair model of node expansion, f_S→P and f_P→S."),
    "reranker": ("training.reranker", "Edge reranker g_e or node reranker g_n."),
    "reader": ("training.reader", "Extractive reader."),
    "table-columns": ("training.table_columns", "Reader of columns: what a question asks of a table's columns."),
    "table-reader": ("training.table_reader", "Reader of tables: rows, column, and what is computed."),
    "passages": ("training.passage_reader", "Reader of passages: does a text answer, and from which word to which."),
    "answer-choice": ("training.answer_choice", "Which reader's answer is given, and how sure it is."),
    "aggregation": ("training.aggregation", "Local refiner: which questions aggregate, which plan, what it is worth."),
    "verifier": ("training.verifier", "Passage verification: a calibrated score of edges."),
    "probability": ("training.probability", "What scores mean: chances of evidence, and that the corpus holds any."),
    "query-confidence": ("training.query_confidence", "How sure a query is that no language model wrote."),
    "spread": ("training.spread", "Spreading: what a repeated row or passage costs."),
    "augment": ("training.augment", "Augmenter (DAQu): what the columns of a question's context count."),
    "slr": ("training.slr", "Star-based LLM refinement: LoRA on a causal language model."),
}
"""Every role with the module that trains it and what it is."""

RECIPES = Path(__file__).parent / "configs"
"""The recipes that the packaged models were trained by."""


class DataSettings(Section):
    """What a recipe learns from."""

    index: Path | None = None
    """Index whose corpus the examples are of."""
    questions: tuple[Path, ...] = ()
    """Question files (.jsonl, .jsonl.gz); train questions only."""
    examples: tuple[Path, ...] = ()
    """Folders that `helios train examples` wrote."""
    held_out: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of the tables whose questions choose the checkpoint and are never trained on."""


class TrainRole(Protocol):
    """Trains one role: writes weights and a card to `out` and returns the scores of what it wrote."""

    def __call__(
        self, settings: Any, out: Path, *, device: Any, on_log: Callable[[LogRow], None]
    ) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True)
class Role:
    """The schema of a role's recipe files and what trains it."""

    settings: type[Section]
    train: TrainRole


def find_role(name: str) -> Role:
    """The role's `ROLE`; TrainingError for a role that this installation lacks or whose extra is missing."""
    if name not in ROLES:
        raise TrainingError(f"unknown role {name!r}; known roles: {', '.join(ROLES)}")
    module, _ = ROLES[name]
    if find_spec(module) is None:
        raise TrainingError(f"role {name!r}: this installation has no module {module}")
    try:
        role = getattr(import_module(module), "ROLE", None)
    except ModuleNotFoundError as error:
        raise TrainingError(
            f"role {name!r} needs {error.name!r}, which is not installed: {installation(error.name or '')}"
        ) from error
    if not isinstance(role, Role):
        raise TrainingError(f"role {name!r}: {module} has no recipe for the command line yet")
    return role


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def find_recipe(name: str) -> Path:
    """The file of a recipe: a path, or the name of one in the package; ConfigError where there is neither."""
    path = Path(name)
    if path.exists():
        return path
    if name in recipe_names():
        return RECIPES / f"{name}.yaml"
    near = difflib.get_close_matches(path.stem, recipe_names(), n=1)
    hint = f"did you mean --recipe {near[0]}?" if near else f"recipes in the package: {', '.join(recipe_names())}"
    raise ConfigError(f"{name}: no such recipe file; {hint}")


def load_recipe(schema: type[Settings], path: Path | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Defaults, then the YAML file, then `section.key=value`; ConfigError names unknown keys and wrong values."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, value in _flatten(_document(path), schema) if path else ():
        _store(values, key, value)
        sources[key] = str(path)
    for text in overrides:
        key, value = _override(text)
        _store(values, key, value)
        sources[key] = f"override {text!r}"
    unknown = [key for key in sources if key not in known_keys(schema)]
    if unknown:
        raise ConfigError("\n".join(_unknown(key, sources[key], schema) for key in unknown))
    try:
        return schema.model_validate(_over_defaults(schema, values))
    except ValidationError as error:
        raise ConfigError(_explain(error, sources)) from None


def _over_defaults(schema: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with what a recipe's own default of a section sets where a file or an override sets only a part."""
    merged = dict(values)
    for name, field in schema.model_fields.items():
        if name in merged and isinstance(field.default, BaseModel) and isinstance(merged[name], Mapping):
            merged[name] = {**field.default.model_dump(exclude_unset=True), **merged[name]}
    return merged


def known_keys(schema: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all settings."""
    keys = []
    for name, field in schema.model_fields.items():
        section = _section(field.annotation)
        keys += known_keys(section, f"{prefix}{name}.") if section else [f"{prefix}{name}"]
    return keys


def _section(annotation: Any) -> type[BaseModel] | None:
    options = (annotation, *get_args(annotation))
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _document(path: Path) -> Mapping[Any, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the recipe ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML ({error})") from None
    if document is not None and not isinstance(document, Mapping):
        raise ConfigError(f"{path}: expected a mapping of settings, got {type(document).__name__}")
    return document or {}


def _flatten(values: Mapping[Any, Any], schema: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) pairs; only sections are entered."""
    for name, value in values.items():
        field = schema.model_fields.get(str(name))
        section = _section(field.annotation) if field else None
        if section and isinstance(value, Mapping):
            yield from _flatten(value, section, f"{prefix}{name}.")
        elif not (section and value is None):
            yield f"{prefix}{name}", value


def _override(text: str) -> tuple[str, Any]:
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"override {text!r}: expected section.key=value, for example train.epochs=2")
    try:
        return key.strip(), yaml.safe_load(raw) if raw.strip() else None
    except yaml.YAMLError as error:
        raise ConfigError(f"override {text!r}: the value is not valid YAML ({error})") from None


def _store(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, leaf = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[leaf] = value


def _unknown(key: str, source: str, schema: type[BaseModel]) -> str:
    keys = known_keys(schema)
    inside = [known for known in keys if known.startswith(f"{key}.")]
    if inside:
        return f"{source}: {key!r} is a section; set one of {', '.join(inside)}"
    leaf = key.rpartition(".")[2]
    near = [known for known in keys if known.rpartition(".")[2] == leaf] or difflib.get_close_matches(key, keys, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(keys)}"
    return f"{source}: unknown setting {key!r}; {hint}"


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    """One line per wrong value: where it was set, its key, and what is wrong with it."""
    lines: dict[str, str] = {}
    for problem in error.errors():
        names = [str(part) for part in problem["loc"]]
        key = next((key for key in sources if key == ".".join(names[: key.count(".") + 1])), ".".join(names))
        message = f"{sources.get(key, 'recipe')}: {key}: {problem['msg']}, got {problem['input']!r}"
        lines.setdefault(key, message)
    return "\n".join(lines.values())
