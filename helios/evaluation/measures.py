"""The measures, as pure functions of one question's ranked list (HELIOS 5.1).

Definitions that the papers leave open are fixed here and explained in docs/evaluation.md.
"""

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from helios.evaluation.edges import EdgeId, RankedEdge, table_order
from helios.evaluation.linearise import linearise_edge, linearised_nodes

Tokenizer = Callable[[str], Sequence[tuple[int, int]]]
"""Text to the character spans [start, end) of its tokens, in order."""

_WORD = re.compile(r"[^\W_]+")
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The default tokenizer: runs of letters and digits, and single other marks."""
    return [match.span() for match in _WORD_OR_MARK.finditer(text)]


def normalise(text: str) -> str:
    """Words in lower case with single spaces between; empty if there is no letter or digit."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def contains_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether one of the answers stands in the text, word by word.

    An answer that normalises to nothing is never contained.
    """
    words = f" {normalise(text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def answer_rank(edges: Sequence[RankedEdge], answers: Sequence[str]) -> int | None:
    """The rank (from 1) of the first edge whose text contains an answer, None if none does.

    AR@k is 1 where this rank is at most k.
    """
    for rank, edge in enumerate(edges, start=1):
        if contains_answer(linearise_edge(edge), answers):
            return rank
    return None


def answer_within_tokens(
    edges: Iterable[RankedEdge],
    answers: Sequence[str],
    *,
    tokenizer: Tokenizer = word_spans,
    limit: int = 4096,
) -> bool:
    """HITS@4K: whether an answer stands in the first `limit` tokens of the linearised list.

    Nodes are printed in the order of their first edge and only once. The text ends after token number
    `limit`, so that this token still counts.
    """
    printed: set[object] = set()
    pieces: list[str] = []
    left = limit
    for node, text in (item for edge in edges for item in linearised_nodes(edge)):
        if left <= 0:
            break
        if node in printed:
            continue
        printed.add(node)
        spans = tokenizer(text)
        pieces.append(text if len(spans) <= left else text[: spans[left - 1][1]])
        left -= len(spans)
    return contains_answer("\n".join(pieces), answers)


def distinct_gold(gold: Iterable[EdgeId]) -> tuple[EdgeId, ...]:
    """Gold edges, each once, without those that another one covers.

    Gold (segment, None) beside (segment, passage) asks for nothing that the latter does not give.
    """
    edges = tuple(dict.fromkeys(gold))
    return tuple(edge for edge in edges if not any(other != edge and other.covers(edge) for other in edges))


def linked_gold(gold: Iterable[EdgeId]) -> tuple[EdgeId, ...]:
    """The gold edges that name both nodes, each once."""
    return tuple(dict.fromkeys(e for e in gold if e.segment_id is not None and e.passage_id is not None))


def collected_gold(ranked: Iterable[EdgeId], gold: Iterable[EdgeId]) -> list[EdgeId | None]:
    """For every rank the gold edge that it finds for the first time, else None.

    One rank finds at most one gold edge, and a gold edge is found once: a gold segment without a passage
    by the first edge of that segment.
    """
    missing = dict.fromkeys(distinct_gold(gold))
    found: list[EdgeId | None] = []
    for edge in ranked:
        match = next((candidate for candidate in _met_by(edge) if candidate in missing), None)
        if match is not None:
            del missing[match]
        found.append(match)
    return found


def ndcg(ranked: Sequence[EdgeId], gold: Sequence[EdgeId], *, k: int) -> float:
    """nDCG@k with binary gains; the ideal list has every distinct gold edge once.

    Raises ValueError without gold: such questions have no nDCG and are counted apart.
    """
    ideal_count = len(distinct_gold(gold))
    if not ideal_count:
        raise ValueError("nDCG needs at least one gold edge")
    found = collected_gold(ranked[:k], gold)
    gain = math.fsum(1 / math.log2(rank + 1) for rank, edge in enumerate(found, start=1) if edge is not None)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(ideal_count, k) + 1))
    return min(gain / ideal, 1.0)


def gold_edge_recall(ranked: Sequence[EdgeId], gold: Sequence[EdgeId], *, k: int) -> float:
    """Share of the distinct gold edges that the first k edges find; ValueError without gold."""
    count = len(distinct_gold(gold))
    if not count:
        raise ValueError("gold-edge recall needs at least one gold edge")
    return sum(edge is not None for edge in collected_gold(ranked[:k], gold)) / count


def table_rank(ranked: Sequence[EdgeId], table_id: str) -> int | None:
    """The rank (from 1) of a table when tables come in the order of their first edge."""
    order = table_order(ranked)
    return order.index(table_id) + 1 if table_id in order else None


def exact_match(prediction: str, answers: Iterable[str]) -> bool:
    """SQuAD exact match: equal after lower case and without punctuation, articles and extra spaces."""
    return any(_squad_words(prediction) == _squad_words(answer) for answer in answers)


def f1(prediction: str, answers: Iterable[str]) -> float:
    """SQuAD token F1, the best over the answers; two empty strings count as equal."""
    return max((_f1(_squad_words(prediction), _squad_words(answer)) for answer in answers), default=0.0)


def _met_by(edge: EdgeId) -> Iterable[EdgeId]:
    """Gold edges that an edge meets, the most specific first."""
    yield edge
    if edge.segment_id is not None and edge.passage_id is not None:
        yield EdgeId(edge.segment_id, None)
        yield EdgeId(None, edge.passage_id)


def _squad_words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(prediction: Sequence[str], answer: Sequence[str]) -> float:
    if not prediction or not answer:
        return float(prediction == answer)
    common = sum((Counter(prediction) & Counter(answer)).values())
    return 2 * common / (len(prediction) + len(answer))
