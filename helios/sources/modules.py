"""Modules that a kind of source needs and that may be absent, such as those of the extra `sources`.

They are imported where they are used, some of them in another process: so they are looked for before anything is
opened.
"""

from collections.abc import Iterable
from importlib.util import find_spec

from helios.errors import SourceUnavailable
from helios.extras import installation


def require_modules(modules: Iterable[str], *, wanted_by: str, install: str = "") -> None:
    """SourceUnavailable names the modules that are not installed, who wants them, and how to install them."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        raise SourceUnavailable(
            f"{wanted_by} needs {' and '.join(missing)}, which {verb} not installed: "
            f"{install or installation(missing[-1])}"
        )
