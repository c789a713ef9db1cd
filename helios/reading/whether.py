"""Yes and no: whether the sentence or the row that is nearest to a question affirms or denies.

    can we light candles at the dinner | Candles are forbidden; battery candles may be borrowed.   ->  no
    does the growing plan have phone support | Plan: Growing ; Seats: 5 ; Phone support: no        ->  no

A sentence denies by a word of negation in the clause that is about what the question ends with, or in the nearest one;
a row by the cell under the nearest header. Other languages are read word by word in English.

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
from helios.reading.question import STOP, ask_in_any_language, yes_or_no
from helios.reading.spans import ReadNode, Shape, Span, citation_of, place_number, read_nodes
from helios.reading.tables.dates import MONTH
from helios.reading.tables.matching import NO, YES, question_words
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
    r"\b(?:wh(?:at|ich|o|om|ose|en|ere|y)s?|how|list|name|show|find|give|tell|"
    r"wer|wen|wem|wessen|was|wann|warum|wieso|weshalb|weswegen|wie|welche[rsnm]?|"
    r"wo(?:her|hin|mit|zu|f[üu]r|durch|bei|nach|von|vor|ran|rauf|raus|rin|r[üu]ber|rum|gegen)?|wie ?viele?|"
    r"qui|quoi|quel(?:le)?s?|o[ùu]|quand|comment|combien|pourquoi|lequel|laquelle|"
    r"qu[eé]|cu[aá]l(?:es)?|qui[eé]n(?:es)?|d[oó]nde|cu[aá]ndo|c[oó]mo|cu[aá]nt[oa]s?)\b|\bqu['’](?!il\b|on\b|elle)"
    r"|什么|什麼|哪|谁|誰|怎|如何|多少|几|幾|为什么|啥|多[久长大远高重早晚]",
    re.IGNORECASE,
)
"""Words that ask for something else."""
_EITHER = re.compile(r"吗|嗎|是否|(.)[不没]\1|有没有|了没|没有?[?？]?$")
"""Words that ask for yes or no wherever they stand."""
_TURNED = re.compile(
    r"-t-(?:il|elle|on|ils|elles)\b|\best-ce qu|\b(?:peut|doit|faut|est|sont|puis)-(?:on|il|elle|ils|elles|je)\b", re.I
)
"""French verbs before their subjects."""
_FRENCH_VERB = re.compile(
    r"\b(?:on|nous|vous|ils?|elles?|je|est|sont|peut|peuvent|faut|doit|ont|y a)\b|\b[jn]['’]", re.IGNORECASE
)
_ENGLISH_WAS = re.compile(
    r"^\W*was\b.*\b(?:the|of|for|our|my|any|there|its|he|she|they|we|still|valid|paid|sold)\b", re.IGNORECASE
)
"""German asks "was" where English asks "what"."""
_SHORT = re.compile(
    r"\b(?:yet|right|ok|okay|allowed|any(?:one|body|thing)?|still|already|possible|included|available|open|closed|done|"
    r"fixed|needed|required|valid|back|in stock)\b",
    re.IGNORECASE,
)
"""English questions without a verb ask for yes or no by one of these: "insurance paid yet?"."""
_CHOICE = re.compile(r"\b(?:or|oder|ou)\b|还是", re.IGNORECASE)
"""Words that ask which of two."""
_DENYING = re.compile(
    r"\bno\b(?!\.?\s*\d|\s+(?:later|less|more|fewer|problem|charge|cost|limit|doubt)\b)|\bnot\b(?!\s+only\b)|"
    r"\b(?:never|cannot|nor|neither|nobody|none|nothing|forbidden|prohibited|banned|voted down|sold out)\b|"
    r"\bout of stock\b|"
    r"n['’]t\b|\b(?:ca|wo|do|does|did|is|are|was|were|should|must)nt\b",
    re.IGNORECASE,
)
_DENYING_ELSEWHERE = re.compile(
    r"\binterdi|\bdéfense de|\bproh[ií]b|\bverboten|\buntersagt|谢绝|禁止|不得|严禁", re.IGNORECASE
)
_SHUT = re.compile(r"\b(?:closed|cancell?ed|rejected|refused|expired|ended|without)\b", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:open|valid|still|on|accept|agree|approve|pass)(?:s|ed|d)?\b", re.IGNORECASE)
"""What is shut denies a question that asks for this; for others it is not clear what it says."""
_CLAUSE = re.compile(r"[,;:] |[，；：]| (?=(?:but|aber|sondern|mais|pero)\b)", re.IGNORECASE)
_NAME = re.compile(r"(?<=\w )[A-Z][\w'’-]+")
_DATE = re.compile(rf"\d{{1,2}}[./-]\d{{1,2}}|\b\d{{4}}\b|\b(?:{MONTH})\b|✓", re.IGNORECASE)
_CROSSES = NO | {"✗", "✘", "❌", "×", "☐", "—", "−", "nil", "none", "0.0", "keine", "keiner", "aucun", "ninguno"}
_UNKNOWN = frozenset(("n/a", "n.a.", "na", "?", "unknown", "tbc", "tba", "unbekannt", "k.a.", "inconnu", "desconocido"))


def asks_whether(question: str) -> bool:
    """Whether yes or no may answer a question: it begins with its verb, or asks without a word that asks for more."""
    if _CHOICE.search(question):
        return False
    if _EITHER.search(question) or _ENGLISH_WAS.search(question):
        return True
    if _ASKING.search(question) or ask_in_any_language(question).word:
        return False
    if wording_of(question).has("whether") or _TURNED.search(question):
        return True
    asks = question.rstrip().endswith(("?", "？"))
    french = recognise(question) == "fr" and _FRENCH_VERB.search(question) is not None
    return asks and (french or "¿" in question or _SHORT.search(question) is not None)


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

        Nothing for a question of another kind, or one that negates or compares: "is it not allowed?" has no clear yes,
        and "is it over £50?" is for those that compute. `said` are the vectors of the question's tokens.
        """
        if not asks_whether(question) or denies(question) or _compares(question):
            return []
        nodes = read_nodes(evidence, edges=EDGES)
        weights_Q = _weights(question, said)
        if not nodes or not weights_Q.sum():
            return []
        asked, best = Question.of(question), dict[bool, Statement]()
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


def _weights(question: str, said: TokenVectors) -> FloatArray:
    """How much each token of the question counts (Q): marks do not, common words of its language little."""
    weights_Q = np.zeros(len(said.spans), np.float32)
    for word in question_words(question):
        within = (said.spans[:, 0] < word.end) & (said.spans[:, 1] > word.start)
        weights_Q[within] = STOP_WEIGHT if word.stop else 1.0
    return weights_Q


def denies(text: str) -> bool:
    """Whether a word of a text negates, in the text or in its English."""
    english = gloss(text)
    said = text if english is None else english.text
    return _DENYING.search(said) is not None or _DENYING_ELSEWHERE.search(text) is not None


@dataclass(frozen=True, slots=True)
class Question:
    """What a statement is held against."""

    text: str
    words: tuple[str, ...]
    """The words of content in their order, in English where a glossary has that."""
    facts: frozenset[str]
    """Numbers, and names that stand inside an English question: what affirms must have them all."""

    @classmethod
    def of(cls, text: str) -> "Question":
        """Take a question apart."""
        names = _NAME.findall(text) if recognise(text) in ("", "en") else []
        facts = (term for word in (*re.findall(r"\d+", text), *names) for term in terms_of(word))
        return cls(text, tuple(_content(text)), frozenset(facts) - STOP)

    def is_denied(self, text: str) -> bool | None:
        """Whether some words deny it, affirm it as far as they speak of it, or, None, leave it open."""
        if denies(text):
            return True
        if _SHUT.search(text):
            return True if _OPEN.search(self.text) else None
        return False


def statements(
    asked: Question, number: int, node: ReadNode, tokens: TokenVectors, similar_QL: FloatArray, weights_Q: FloatArray
) -> Iterator[Statement]:
    """The sentences of a text, or the row that a node is, as far as they say yes or no to a question.

    A sentence denies where the clause does that tells, or the nearest one: "guests may borrow the boat, but not the
    car".
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
                told = _telling(asked, [text[first:last] for first, last in clauses])
                denied = asked.is_denied(text[start:end]) if told is None else told
                if denied or (
                    denied is not None and asked.facts <= set(terms_of(f"{node.title} {text[piece.start : piece.end]}"))
                ):
                    yield Statement(number, near(piece.start, piece.end), denied, (at,))
        return
    cells = {place_number(piece): at for at, piece in enumerate(pieces) if piece.where.startswith("cell")}
    column = asked_column(node, tokens, similar_QL)
    if column is None:
        denied = asked.is_denied(text)
        if denied is False and not set(asked.words) <= _content(text).keys():
            denied = None
    else:
        denied = denied_by(node.segment.cells[column], asked)
    if cells and (denied or (denied is not None and asked.facts <= set(terms_of(text)))):
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


def _telling(asked: "Question", clauses: Sequence[str]) -> bool | None:
    """Whether the clause denies that has the word of the question which tells it from the others; None without one.

    The last such word tells: "can guests borrow the car?" and "can we smoke in the yard?" end with what they are about,
    but in German.
    """
    denying = [denies(clause) for clause in clauses]
    if not any(denying) or all(denying):
        return None
    words = [_content(clause) for clause in clauses]
    denied, affirmed = (
        frozenset[str]().union(*(own for own, one in zip(words, denying, strict=True) if one is wanted))
        for wanted in (True, False)
    )
    own = [word for word in asked.words if (word in denied) != (word in affirmed)]
    if not own or (recognise(asked.text) == "de" and len({word in denied for word in own}) > 1):
        return None
    return own[-1] in denied


def _compares(question: str) -> bool:
    return any(comparison.operator != "=" for comparison in wording_of(question).comparisons)


def _content(text: str) -> dict[str, None]:
    """The words of a text, or of its English, that are not common ones, in their order."""
    english = gloss(text)
    return {term: None for term in terms_of(text if english is None else english.text) if term not in STOP}


def denied_by(cell: str, asked: Question) -> bool | None:
    """Whether the cell that is asked about says no: by a sign, by nothing, or by a word; None where it says something
    else, such as blue where red was asked for."""
    said = cell.strip().casefold()
    if said in YES:
        return False
    if said in _CROSSES or denies(cell):
        return True
    if said in _UNKNOWN:
        return None
    return False if _DATE.search(cell) or _content(cell).keys() & set(asked.words) else None


def _clauses(text: str, piece: Piece) -> list[tuple[int, int]]:
    """Characters of the clauses of a sentence."""
    cuts = [piece.start + match.end() for match in _CLAUSE.finditer(text[piece.start : piece.end])]
    return list(pairwise([piece.start, *cuts, piece.end]))


def _whole(node: ReadNode, number: int, place: int) -> Span:
    """A piece of a node without the spaces at its end."""
    piece = node.text.pieces[place]
    text = node.text.text[piece.start : piece.end]
    return Span(number, place, piece.start, piece.start + len(text.rstrip()), Shape.PHRASE)
