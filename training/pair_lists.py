"""Lists of pairs through a cross-encoder: those of like length together, scores back in the order of the lists."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from helios.index.reader import Corpus
from helios.retrieval.reranking.evidence_text import evidence_texts
from helios.retrieval.reranking.pair_scorer import Pair as ReadPair
from helios.retrieval.reranking.pair_scorer import PairReader, padded
from training.reranker_lessons import Pair

CHUNK = 12
"""Pairs that go through the encoder together."""
Score = Callable[[Tensor, Tensor, Tensor], Tensor]
Each = Callable[[Callable[[Sequence[ReadPair]], Tensor], Iterable[Sequence[ReadPair]]], Iterable[Tensor]]


class PairLists:
    """Reads the pairs of questions from a corpus and scores them."""

    def __init__(self, corpus: Corpus, reader: PairReader, *, device: torch.device) -> None:
        self.corpus, self.reader, self.device = corpus, reader, device

    def logits(
        self, rows: Sequence[tuple[str, Sequence[Pair]]], score: Score, *, each: Each = map, chunk: int = CHUNK
    ) -> list[Tensor]:
        """Scores of the pairs of questions; `each` maps over chunks, in order."""
        read = [pair for question, pairs in rows for pair in self.read(question, pairs)]
        order = sorted(range(len(read)), key=lambda i: len(read[i]))

        def scored(pairs: Sequence[ReadPair]) -> Tensor:
            return score(*(torch.from_numpy(array).to(self.device) for array in padded(pairs))).float()

        chunks = [[read[i] for i in order[start : start + chunk]] for start in range(0, len(order), chunk)]
        back = torch.empty(len(order), dtype=torch.long, device=self.device)
        back[torch.tensor(order, device=self.device)] = torch.arange(len(order), device=self.device)
        return list(torch.cat(list(each(scored, chunks)))[back].split([len(pairs) for _, pairs in rows]))

    def read(self, question: str, pairs: Sequence[Pair]) -> list[ReadPair]:
        """Token numbers of a question with each of its pairs."""
        evidence = [
            (
                self.corpus.segment(segment) if segment >= 0 else None,
                self.corpus.passages[passage] if passage >= 0 else None,
            )
            for segment, passage in pairs
        ]
        texts = evidence_texts(
            question, evidence, max_tokens=self.reader.max_tokens, count_tokens=self.reader.count_tokens
        )
        return self.reader.read(question, texts)
