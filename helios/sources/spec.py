"""How a source is registered: one frozen model a kind; unknown keys, unknown kinds and secrets are refused.

    shop:
      kind: postgresql
      url: postgresql://reader@db.example.org/shop
      password_env: SHOP_PASSWORD          # the variable's name, never the password

A path is relative to the folder of the file that registers it.
"""

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from helios.config import Section
from helios.errors import ConfigError, SourceUnavailable
from helios.executors.address import BOLT_SCHEMES, read_address
from helios.executors.base import Limits
from helios.sources.access import Access, GraphAccess
from helios.sources.kinds import kind_named, kind_names

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET_WORDS = re.compile(r"(^|[_-])(\w*passw(or)?d|pwd|pass|secret|token|api[_-]?key|credentials?)$", re.IGNORECASE)
"""Names of keys whose value would be a secret; those that end in `_env` name a variable and are fine."""
FORMAT = "2"
"""Raised when descriptors are read in another way, so that cached ones are read again."""
MAX_FILES = 10_000
"""Files of a folder that its fingerprint looks at."""


def _environment_name(name: str) -> str:
    if not ENVIRONMENT_NAME.fullmatch(name):
        raise ValueError("expected the NAME of an environment variable that holds the secret, not the secret")
    return name


def _address(*schemes: str, user: bool = False, parameters: Sequence[str] | None = None) -> AfterValidator:
    """A URL of these schemes without a secret; see `read_address`."""

    def read(url: str) -> str:
        read_address(url, schemes=schemes, user=user, parameters=parameters)
        return url

    return AfterValidator(read)


EnvironmentName = Annotated[str, AfterValidator(_environment_name)]
EndpointUrl = Annotated[str, _address("http", "https")]
PostgresqlUrl = Annotated[str, _address("postgresql", "postgres", user=True, parameters=("sslmode",))]
BoltUrl = Annotated[str, _address(*BOLT_SCHEMES, parameters=())]
Files = tuple[str, ...] | dict[str, str]
"""Paths, or paths by the name of the table that each becomes."""


class SourceSpec(Section):
    """What all kinds have."""

    model_config = ConfigDict(populate_by_name=True, hide_input_in_errors=True)

    kind: str
    description: str = ""
    """What the source is about, for people and for routing."""
    limits: Limits = Limits()

    remote: ClassVar[bool] = False
    """Whether the data is on another machine, so that nothing here tells when it changes."""

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """The local files and folders that hold the data."""
        return ()

    def fingerprint(self, folder: Path) -> str:
        """A hash of the registration and of size and time of every local file; data that changed has another one."""
        digest = sha256(f"{FORMAT} {self.model_dump_json(exclude={'limits'})}".encode())
        for path in self.paths(folder):
            for file in _files(path):
                digest.update(f"{file} {_stamp(file)}\n".encode())
        return digest.hexdigest()


class _PathSpec(SourceSpec):
    path: str = Field(min_length=1)

    def paths(self, folder: Path) -> tuple[Path, ...]:
        return (resolve(self.path, folder),)


class CorpusSpec(_PathSpec):
    """A HELIOS index folder, a folder in BEIR layout, or documents as JSON lines (also gzipped)."""

    id_field: str = ""
    """Names of the fields of a record; empty: `_id` or `id`, `title`, and `text`, `content` or `body`."""
    title_field: str = ""
    text_field: str = ""
    style: str = ""
    """What the documents are, such as `abstracts of papers`; empty: told from the documents."""
    rerank: int = Field(default=100, ge=0, le=1000)
    """Documents of BM25's best that the token encoder reads again; 0 leaves it to BM25."""


class SqliteSpec(_PathSpec):
    """A SQLite file."""

    system_tables: bool = False
    """Whether queries may read the tables and columns that the database lists of itself."""
    access: Access = Access()
    """Which tables, columns and rows may be seen."""


class DuckDbSpec(SourceSpec):
    """A DuckDB file, or Parquet and CSV files as tables."""

    path: str | None = None
    files: Files = ()
    system_tables: bool = False
    """Whether queries may read the tables and columns that the database lists of itself."""
    access: Access = Access()
    """Which tables, columns and rows may be seen."""

    @model_validator(mode="after")
    def _one_of_them(self) -> "DuckDbSpec":
        if bool(self.path) == bool(self.files):
            raise ValueError("give either path (a DuckDB file) or files (Parquet and CSV files)")
        return self

    def paths(self, folder: Path) -> tuple[Path, ...]:
        names = self.files.values() if isinstance(self.files, Mapping) else self.files
        return tuple(resolve(name, folder) for name in ([self.path] if self.path else names))

    def tables(self, folder: Path) -> dict[str, Path]:
        """The files by the name of their table: the file's own name without its endings where none is given."""
        if isinstance(self.files, Mapping):
            return {name: resolve(file, folder) for name, file in self.files.items()}
        paths = [resolve(file, folder) for file in self.files]
        return {path.name.partition(".")[0]: path for path in paths}


class PostgresqlSpec(SourceSpec):
    """A PostgreSQL database; the role should have SELECT alone."""

    remote: ClassVar[bool] = True
    url: PostgresqlUrl
    user: str | None = None
    password_env: EnvironmentName | None = None
    namespace: str = Field(default="public", alias="schema")
    """The schema whose tables are described, and found without being named."""
    trusted_role: str | None = None
    """The user's name again, where it is meant to be a superuser or one that reaches the server's files."""
    system_tables: bool = False
    """Whether queries may read the tables and columns that the database lists of itself."""
    access: Access = Access()
    """Which tables, columns and rows may be seen."""


class RdfSpec(SourceSpec):
    """RDF files (N-Triples, Turtle, RDF/XML, TriG, N-Quads; also gzipped) or a pyoxigraph store."""

    path: str | None = None
    files: tuple[str, ...] = ()
    prefixes: dict[str, str] = {}
    access: GraphAccess = GraphAccess()
    """Which classes and predicates may be seen."""

    @model_validator(mode="after")
    def _one_of_them(self) -> "RdfSpec":
        if bool(self.path) == bool(self.files):
            raise ValueError("give either path (a store, or one file) or files")
        return self

    def paths(self, folder: Path) -> tuple[Path, ...]:
        return tuple(resolve(name, folder) for name in ([self.path] if self.path else self.files))


class SparqlSpec(SourceSpec):
    """A SPARQL endpoint."""

    remote: ClassVar[bool] = True
    url: EndpointUrl
    user: str | None = None
    password_env: EnvironmentName | None = None
    token_env: EnvironmentName | None = None
    prefixes: dict[str, str] = {}
    service: tuple[str, ...] = ()
    """What a query may call by SERVICE at the endpoint, such as `wikibase:label`; none: nothing."""


class PropertyGraphSpec(_PathSpec):
    """A ladybug database."""

    access: GraphAccess = GraphAccess()
    """Which labels, relationship types and properties may be seen."""


class BoltSpec(SourceSpec):
    """A property graph behind Bolt (Neo4j and others)."""

    remote: ClassVar[bool] = True
    url: BoltUrl
    user: str | None = None
    password_env: EnvironmentName | None = None
    database: str | None = None


class OpenSearchSpec(SourceSpec):
    """An index of an OpenSearch server; a role that may read it suffices."""

    remote: ClassVar[bool] = True
    url: EndpointUrl
    index: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,254}$")
    """The index or alias that is searched; patterns and lists are refused."""
    user: str | None = None
    password_env: EnvironmentName | None = None
    fields: tuple[str, ...] = ()
    """Fields that are searched, such as `title^2`; none: all texts of the mapping."""
    title_field: str = "title"
    text_field: str = "text"
    style: str = ""
    """What the documents are, such as `abstracts of papers`; empty: told from the documents."""
    rerank: int = Field(default=50, ge=0, le=1000)
    """Documents of the server's best that the token encoder reads again; 0 keeps the server's order."""


def read_spec(name: str, values: Any, *, where: str) -> SourceSpec:
    """Check the registration of one source; ConfigError names `where`, the source, and every wrong key."""
    place = f"{where}: source {name!r}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(
            f"{place}: expected a name of letters, digits, '_', '-' and '.', at most 64 of them"
            + ("" if isinstance(name, str) else "; put it into quotes")
        )
    if not isinstance(values, Mapping):
        raise ConfigError(f"{place}: expected its settings, got {type(values).__name__}")
    spec = _spec_of(values.get("kind"), place)
    _refuse_secrets(values, place)
    if "\0" in _texts(values):
        raise ConfigError(f"{place}: has a zero character, which no path and no address has")
    _refuse_unknown(values, spec, place)
    try:
        return spec.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError("\n".join(f"{place}: {line}" for line in _problems(error))) from None


def plain_spec(spec: SourceSpec) -> dict[str, Any]:
    """What a file says of a registration: the kind, and what differs from the defaults."""
    values = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"kind"})
    return {"kind": spec.kind} | values


def secret(variable: str | None, *, source: str) -> str | None:
    """What the environment variable holds; SourceUnavailable where it is named but not set."""
    if variable is None:
        return None
    if variable not in os.environ:
        raise SourceUnavailable(
            f"source {source!r}: the environment variable {variable} is not set; it holds the secret"
        )
    return os.environ[variable]


def resolve(path: str, folder: Path) -> Path:
    """A path of a registration, from the folder of its file."""
    return (folder / Path(path).expanduser()).resolve()


def _spec_of(kind: Any, place: str) -> type[SourceSpec]:
    kinds = kind_names()
    if kind is None:
        raise ConfigError(f"{place}: no kind; expected one of {', '.join(kinds)}")
    if kind not in kinds:
        raise ConfigError(f"{place}: unknown kind {kind!r}; {_hint(str(kind), kinds)}")
    return kind_named(kind).spec


def _refuse_secrets(values: Mapping[Any, Any], place: str) -> None:
    for key in map(str, values):
        if SECRET_WORDS.search(key):
            raise ConfigError(
                f"{place}: {key}: a secret must not stand in this file; put it into an environment variable "
                f"and write `{key}_env: NAME_OF_THE_VARIABLE`"
            )


def _texts(values: Any) -> str:
    """All keys and texts of a registration, one after the other."""
    if isinstance(values, Mapping):
        return " ".join(_texts(part) for item in values.items() for part in item)
    return " ".join(map(_texts, values)) if isinstance(values, list | tuple) else str(values)


def _refuse_unknown(values: Mapping[Any, Any], spec: type[SourceSpec], place: str) -> None:
    for section, known, given in (
        ("", [field.alias or name for name, field in spec.model_fields.items()], values),
        ("limits.", list(Limits.model_fields), values.get("limits")),
        ("access.", _access_keys(spec), values.get("access") if "access" in spec.model_fields else None),
    ):
        for key in map(str, given if isinstance(given, Mapping) else ()):
            if key not in known:
                raise ConfigError(f"{place}: unknown key {section + key!r}; {_hint(key, known)}")


def _access_keys(spec: type[SourceSpec]) -> list[str]:
    field = spec.model_fields.get("access")
    kind = field.annotation if field is not None else Access
    return list((kind if isinstance(kind, type) and issubclass(kind, Section) else Access).model_fields)


def _hint(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(known)}"


def _problems(error: ValidationError) -> Iterable[str]:
    """One line a wrong key; what was given is not repeated, it could be a secret."""
    lines: dict[str, str] = {}
    for problem in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in problem["loc"] if part not in ("tuple[str, ...]", "dict[str,str]"))
        message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
        lines.setdefault(key, f"{key}: {message}" if key else message)
    return lines.values()


def _files(path: Path) -> list[Path]:
    """The file and what SQLite keeps beside it, or the files of a folder."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())[:MAX_FILES]
    beside = [path.with_name(f"{path.name}{ending}") for ending in ("-wal", ".wal")]
    return [path, *(file for file in beside if file.exists())]


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return "absent"
    return f"{status.st_size} {status.st_mtime_ns}"
