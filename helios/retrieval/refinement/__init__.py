"""Star-based refinement (HELIOS 4.3): column-wise aggregation and passage verification."""

from helios.retrieval.refinement.base import (
    Contribution,
    Refinement,
    RefinementMode,
    RefinementReport,
    Refiner,
    demote,
    promote,
)

__all__ = ["Contribution", "Refinement", "RefinementMode", "RefinementReport", "Refiner", "demote", "promote"]
