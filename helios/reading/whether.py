"""Yes and no: whether the sentence or the row that is nearest to a question affirms or denies.

    can we light candles at the dinner | Candles are forbidden; battery candles may be borrowed.   ->  no
    does the growing plan have phone support | Plan: Growing ; Seats: 5 ; Phone support: no        ->  no

A sentence denies by a word of negation in the clause that is nearest, a row by the cell under the nearest header. Other
languages are read word by word in English.

Shape legend: Q tokens of the question, L tokens of a node.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from helios.index.languages import recognise
from helios.index.lexical import terms_of
from helios.models.encoder import TokenVectors
from helios.models.glossary import gloss
from helios.models.text import Piece
from helios.reading.base import Citation
from helios.reading.question import SAID, STOP, ask_in_any_language, yes_or_no
from helios.reading.spans import ReadNode, Shape, Span, citation_of, place_number, read_nodes
from helios.reading.tables.matching import NO, YES
from helios.reading.tables.wording import wording_of
from helios.reading.vectors import NodeVectors
from helios.types import Evidence

FloatArray = NDArray[np.float32]
EDGES = 6
"""Best edges whose rows and texts are read."""
ROW = 0.9
"""How near a row is beside a sentence: it has more words, of which some are near to everything."""
STOP_WEIGHT = 0.1
"""How much a common word of the question counts."""
NAMED = 0.45
"""How near a header must be to be what is asked about."""
ODDS = (-4.0, 6.0, 6.0)
"""Log-odds of an answer: a constant, by how near it stands, and by how much nearer than what says the opposite."""
FAR = 0.3
"""How near the opposite is where nothing says it."""
_ASKING = re.compile(
    r"\b(?:wh(?:at|ich|o|om|ose|en|ere|y)|how|list|name|show|find|give|tell|"
    r"wer|wen|wem|wessen|was|wo|woher|wohin|wann|warum|wieso|weshalb|wie|womit|wozu|wof[üu]r|wie ?viele?|welche[rsnm]?|"
    r"qui|quoi|quel(?:le)?s?|o[ùu]|quand|comment|combien|pourquoi|lequel|laquelle|"
    r"qu[eé]|cu[aá]l(?:es)?|qui[eé]n(?:es)?|d[oó]nde|cu[aá]ndo|c[oó]mo|cu[aá]nt[oa]s?)\b"
    r"|什么|什麼|哪|谁|誰|怎么|怎麼|如何|多少|几|幾|为什么|多久|多长|多大|多远",
    re.IGNORECASE,
)
"""Words that ask for something else."""
_EITHER = re.compile(r"吗|嗎|是否|(.)[不没]\1|有没有|了没|没有?[?？]?$")
"""Words that ask for yes or no wherever they stand."""
_TURNED = re.compile(r"-t-(?:il|elle|on|ils|elles)\b|\best-ce qu", re.IGNORECASE)
"""French verbs before their subjects."""
_ENGLISH_WAS = re.compile(
    r"^\W*was\b.*(?:\b(?:the|a|an|of|for|at|our|my|any|there|it|its|he|she|they|we|still|by|on)\b|['’]s\b)",
    re.IGNORECASE,
)
"""German asks "was" where English asks "what"."""
_SHORT = re.compile(
    r"\b(?:yet|right|ok|okay|allowed|any(?:one|body|thing)?|still|already|possible|included|available|open|closed|paid|done|"
    r"fixed|needed|required|valid|back|in stock)\b",
    re.IGNORECASE,
)
"""English questions without a verb ask for yes or no by one of these: "insurance paid yet?"."""


_DENYING = re.compile(
    r"\b(?:no|not|never|cannot|nor|neither|nobody|none|nothing|without|forbidden|prohibited|banned|refused|rejected|"
    r"cancelled|closed|expired|voted down|sold out|out of stock)\b|n['’]t\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:] |[，；：]| (?=(?:but|aber|sondern|mais|pero)\b)", re.IGNORECASE)


def asks_whether(question: str) -> bool:
    """Whether yes or no may answer a question: it begins with its verb, or asks without a word that asks for more."""
    if _EITHER.search(question) or _ENGLISH_WAS.search(question):
        return True
    asking = _ASKING.search(question)
    if wording_of(question).has("whether"):
        return asking is None or asking.start() > 0
    if asking is not None or ask_in_any_language(question).word:
        return False
    asks = question.rstrip().endswith(("?", "？")) and (
        recognise(question) in SAID or "¿" in question or _SHORT.search(question) is not None
    )
    return asks or _TURNED.search(question) is not None


@dataclass(frozen=True, slots=True)
class WhetherAnswer:
    """Yes or no, where that stands, and a rough chance."""

    text: str
    node: ReadNode
    span: Span
    """The sentence, or the cell."""
    citations: tuple[Citation, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or a row: how near it is to the question, whether it denies, and the pieces of the node to cite."""

    node: int
    near: float
    denies: bool
    pieces: tuple[int, ...]


class WhetherReader:
    """Answers yes or no from rows and texts; holds no state of a question, so threads may share it."""

    def read(self, question: str, said: TokenVectors, evidence: Evidence, vectors: NodeVectors) -> list[WhetherAnswer]:
        """Yes and no, each from what says it and stands nearest, the likelier first.

        Nothing for a question of another kind, or one that negates: "is it not allowed?" has no clear yes. `said` are
        the vectors of the question's tokens.
        """
        if not asks_whether(question) or denies(question):
            return []
        nodes = read_nodes(evidence, edges=EDGES)
        weights_Q = np.array([_weight(question[start:end]) for start, end in said.spans.tolist()], np.float32)
        if not nodes or not weights_Q.sum():
            return []
        asked, best = _content(question), dict[bool, Statement]()
        for number, (node, tokens) in enumerate(zip(nodes, vectors.nodes(nodes), strict=True)):
            similar_QL = said.vectors @ tokens.vectors.T
            for one in statements(asked, number, node, tokens, similar_QL, weights_Q / weights_Q.sum()):
                if one.denies not in best or one.near > best[one.denies].near:
                    best[one.denies] = one
        found = []
        for denied, one in best.items():
            node = nodes[one.node]
            spans = [_whole(node, one.node, piece) for piece in one.pieces]
            opposite = best[not denied].near if (not denied) in best else FAR
            odds = ODDS[0] + ODDS[1] * one.near + ODDS[2] * (one.near - opposite)
            cited = tuple(citation_of(node, span) for span in spans)
            chance = float(1 / (1 + np.exp(-odds)))
            found.append(WhetherAnswer(yes_or_no(question, yes=not denied), node, spans[0], cited, chance))
        return sorted(found, key=lambda one: -one.confidence)


def _weight(token: str) -> float:
    """How much a token of the question counts: marks do not, common words little."""
    terms = "".join(terms_of(token))
    return 0.0 if not terms else STOP_WEIGHT if terms in STOP else 1.0


def denies(text: str) -> bool:
    """Whether a word of a text negates, in the text or in its English."""
    english = gloss(text)
    return _DENYING.search(text if english is None else english.text) is not None


def statements(
    asked: frozenset[str],
    number: int,
    node: ReadNode,
    tokens: TokenVectors,
    similar_QL: FloatArray,
    weights_Q: FloatArray,
) -> Iterator[Statement]:
    """The sentences of a text, or the row that a node is, for a question with some words of content.

    A sentence denies where its nearest clause does, or one that alone has a word of the question: "guests may borrow
    the boat, but not the car".
    """
    text, pieces = node.text.text, node.text.pieces

    def near(start: int, end: int) -> float:
        inside = (tokens.spans[:, 0] >= start) & (tokens.spans[:, 1] <= end)
        return float((similar_QL[:, inside].max(axis=1) * weights_Q).sum()) if inside.any() else 0.0

    if node.segment is None:
        for at, piece in enumerate(pieces):
            if piece.where.startswith("sentence"):
                clauses = _clauses(text, piece)
                start, end = max(clauses, key=lambda clause: near(*clause))
                denied = denies(text[start:end]) or _denies_alone(asked, [text[first:last] for first, last in clauses])
                yield Statement(number, near(piece.start, piece.end), denied, (at,))
        return
    cells = {place_number(piece): at for at, piece in enumerate(pieces) if piece.where.startswith("cell")}
    column = asked_column(node, tokens, similar_QL)
    denied = denies(text) if column is None else denied_by(node.segment.cells[column])
    if cells:
        first = next(iter(cells.values()))
        cited = dict.fromkeys((cells.get(column, first), first))
        yield Statement(number, ROW * near(0, len(text)), denied, tuple(cited))


def asked_column(node: ReadNode, tokens: TokenVectors, similar_QL: FloatArray) -> int | None:
    """The column whose header is nearest to the question; None where none is near."""
    nearest, column = NAMED, None
    for piece in node.text.pieces:
        inside = (tokens.spans[:, 0] >= piece.start) & (tokens.spans[:, 1] <= piece.end)
        if piece.where.startswith("header") and inside.any():
            near = float(similar_QL[:, inside].max(axis=0).mean())
            if near > nearest:
                nearest, column = near, place_number(piece)
    return column


def _denies_alone(asked: frozenset[str], clauses: Sequence[str]) -> bool:
    """Whether a clause denies that has a word of the question which no affirming clause has."""
    denying = [denies(clause) for clause in clauses]
    if not any(denying) or all(denying):
        return False
    words = [_content(clause) & asked for clause in clauses]
    affirmed = frozenset[str]().union(*(own for own, one in zip(words, denying, strict=True) if not one))
    return any(one and own - affirmed for own, one in zip(words, denying, strict=True))


def _content(text: str) -> frozenset[str]:
    """The words of a text, or of its English, that are not common ones."""
    english = gloss(text)
    return frozenset(terms_of(text if english is None else english.text)) - STOP


def denied_by(cell: str) -> bool:
    """Whether a cell says no: by a sign for it, by nothing, or by a word that negates."""
    said = cell.strip().casefold()
    return said not in YES and (said in NO or denies(cell))


def _clauses(text: str, piece: Piece) -> list[tuple[int, int]]:
    """Characters of the clauses of a sentence."""
    cuts = [piece.start + match.end() for match in _CLAUSE.finditer(text[piece.start : piece.end])]
    return list(pairwise([piece.start, *cuts, piece.end]))


def _whole(node: ReadNode, number: int, place: int) -> Span:
    """A piece of a node without the spaces at its end."""
    piece = node.text.pieces[place]
    text = node.text.text[piece.start : piece.end]
    return Span(number, place, piece.start, piece.start + len(text.rstrip()), Shape.PHRASE)
