"""A small corpus of our own for the demo and the tests: tables, passages, and questions with gold edges."""

from pathlib import Path

QUESTIONS = "questions.jsonl"


def sample_path() -> Path:
    """The folder of the sample corpus; its questions are in QUESTIONS."""
    return Path(__file__).parent
