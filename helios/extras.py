"""Libraries that only some settings need: they come with an extra of the package."""

from importlib import import_module
from types import ModuleType

from helios.errors import ModelError


def import_library(module: str, *, extra: str, needed_by: str = "rerank.backend") -> ModuleType:
    """An optional library; ModelError that says what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ModelError(f"{needed_by} needs {name}: pip install 'helios-retrieval[{extra}]' ({error})") from error
