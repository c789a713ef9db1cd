"""What training raises on purpose, below HeliosError."""

from helios.errors import HeliosError


class TrainingError(HeliosError):
    """A run that cannot start, continue or trust its numbers: says which folder or batch, and what to do."""
