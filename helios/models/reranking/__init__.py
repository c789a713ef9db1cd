"""Rerankers g_e and g_n (HELIOS 4.1, 4.2): a question and a text read together, one score."""

from helios.models.reranking.reranker import Reranker, Scores

__all__ = ["Reranker", "Scores"]
