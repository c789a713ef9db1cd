"""An index that changes while it is searched: add, update, delete, sync and compact.

    index = Index.open("my-index")
    index.add(tables=[...], passages=[...])
    index.delete(ids=["rivers"])

Each change is one commit: a later `Engine.open` sees all of it, and an engine that is open none of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexing.living.change import Change
    from indexing.living.index import Index

__all__ = ["Change", "Index"]


def __getattr__(name: str) -> Any:
    if name == "Index":
        from indexing.living.index import Index

        return Index
    if name == "Change":
        from indexing.living.change import Change

        return Change
    raise AttributeError(f"module 'indexing.living' has no attribute {name!r}")
