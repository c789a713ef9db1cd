"""HELIOS: ranked, checkable evidence from tables, text, databases and graphs.

Importing this package loads neither torch nor a web framework; `Engine` is resolved on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helios.engine import Engine

__version__ = "0.2.0"
__all__ = ["Engine", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from helios.engine import Engine

        return Engine
    raise AttributeError(f"module 'helios' has no attribute {name!r}")
