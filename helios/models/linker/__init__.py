"""The linker: mentions in table cells → candidate passages → scored links (HELIOS 4.1, edge generation)."""

from helios.models.linker.linker import Linker, TableLinker, TableLinks

__all__ = ["Linker", "TableLinker", "TableLinks"]
