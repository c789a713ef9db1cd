"""A question cut into pieces: cues of English, links to the schema and the data, numbers, and words left over."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from helios.routing.formulation.cues import Cue, Grade, Pattern, cues_at
from helios.routing.formulation.linking import FLAG, Link
from helios.routing.formulation.words import Token

SMALL = (Cue.PREPOSITION, Cue.AND, Cue.OR, Cue.RELATIVE, Cue.TIMES)
NEAR = 0.55
"""Links of one span whose scores are this close are all kept."""
GRADED = 0.6
"""What "best paid" or "most expensive" is worth beside a column that is called by a word of it."""
PARTLY = 0.6
"""A score of a name below which a word that is stored as it stands is that value."""
ADJECTIVE = 1.0
"""What a value is worth that says of what kind the things are whose table follows."""
PERHAPS = 0.3
"""What a value is worth that is written like a part of a name."""
POINTED = frozenset(("the", "this", "that"))
POINTING = (*POINTED, "which", "each", "another", "any", "every", "last", "next")
"""Words before "one" where it stands for something: "the November one", "which one"."""
TOGETHER = 0.2
"""What words gain by being one name."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens [start, end) read as one thing."""

    cue: Cue
    start: int
    end: int
    text: str
    payload: object = None
    links: tuple[Link, ...] = ()
    number: float | None = None
    possessive: bool = False
    quoted: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that the piece may name, best first."""
        named = [link for link in self.links if link.column is None]
        top = max((link.score for link in named), default=0.0)
        return tuple(link.table for link in named if link.score > top - 0.1)

    @property
    def columns(self) -> tuple[Link, ...]:
        return tuple(link for link in self.links if link.column is not None and not link.is_value)

    @property
    def values(self) -> tuple[Link, ...]:
        return tuple(link for link in self.links if link.is_value)


def text_before(pieces: Sequence[Piece], piece: Piece) -> str:
    """What stands before a piece; empty for the first."""
    return next((other.text.lower() for other in reversed(pieces) if other.end <= piece.start), "")


def cut(tokens: Sequence[Token], links: Sequence[Link]) -> list[Piece]:
    """The segmentation that explains most of the question."""
    spans: dict[tuple[int, int], list[Link]] = {}
    named = {(link.start, link.end) for link in links if not link.is_value and link.score > PARTLY}
    asks = next(iter(cues_at(list(tokens), 0)), None) if tokens else None
    for link in links:
        if not (asks is not None and asks.cue in (Cue.ASK, Cue.COUNT, Cue.AGGREGATE) and link.start < len(asks.words)):
            spans.setdefault((link.start, link.end), []).append(link)
    nouns = {(link.start, link.table) for link in links if link.column is None and link.whole}
    by_start: dict[int, list[tuple[int, float, Piece]]] = {}
    for (start, end), group in spans.items():
        for worth, piece in _linked(tokens, start, end, group):
            if piece.cue == Cue.VALUE and end == start + 1 and (start, end) in named and _written_otherwise(piece):
                worth = PERHAPS
            elif piece.cue == Cue.VALUE and any(end == at and _all_of(piece, table) for at, table in nouns):
                worth = max(worth, ADJECTIVE)  # "finished jobs", where a job is finished by somebody too
            by_start.setdefault(start, []).append((end, worth, piece))
    best: list[tuple[float, list[Piece]]] = [(0.0, [])] * (len(tokens) + 1)
    whole = {link.start for link in links if link.whole and link.column is not None and not link.is_value}
    for start in range(len(tokens) - 1, -1, -1):
        rest = best[start + 1]
        options = [(rest[0], [_word(tokens, start), *rest[1]])]
        for pattern in cues_at(list(tokens), start):
            if any(word == "amount" and start + i in whole for i, word in enumerate(pattern.words)):
                continue  # "total amount of", where an amount is a column
            after = best[start + len(pattern.words)]
            small = pattern.cue in SMALL and len(pattern.words) == 1
            worth = (0.17 if small else 0.55) * len(pattern.words) - 0.05
            if len(pattern.words) > 1 and isinstance(pattern.payload, Grade) and pattern.payload.attributes:
                worth += GRADED
            options.append((worth + after[0], [_cue(tokens, start, pattern), *after[1]]))
        for end, worth, piece in by_start.get(start, ()):
            options.append((worth + best[end][0], [piece, *best[end][1]]))
        best[start] = max(options, key=lambda option: option[0])
    return _listed(best[0][1], tokens)


def _all_of(piece: Piece, table: str) -> bool:
    """Whether a word in small letters is a value of a table, just as it is stored, and of no other."""
    return all(link.table == table and str(link.value) == piece.text for link in piece.values)


def _listed(pieces: list[Piece], tokens: Sequence[Token]) -> list[Piece]:
    """Names that nothing holds are values where values stand: "Tokyo or Taiwan", "first name Ludie"."""
    found: list[Piece] = []
    for place, piece in enumerate(pieces):
        if piece.cue == Cue.ORDER and piece.text.endswith(" by") and pieces[place + 1 : place + 2]:
            after = pieces[place + 1]
            if after.cue == Cue.VALUE and after.values:  # "plants ordered by Ann Smith"
                piece = Piece(Cue.WORD, piece.start, piece.end, piece.text.removesuffix(" by"))
        named = piece.cue == Cue.WORD and tokens[piece.start].capital
        before = [p for p in found[-2:] if p.cue in (Cue.OR, Cue.VALUE)]
        spoken = [p.cue for p in found[-1:]] == [Cue.COLUMN] or (
            [p.cue for p in found[-2:]] == [Cue.COLUMN, Cue.WORD] and found[-1].text in ("be", "as")
        )
        if named and (spoken or [p.cue for p in before] == [Cue.VALUE, Cue.OR]):
            piece = replace(piece, cue=Cue.VALUE, text=tokens[piece.start].text)
        found.append(piece)
    return found


def _linked(tokens: Sequence[Token], start: int, end: int, group: list[Link]) -> list[tuple[float, Piece]]:
    span = tokens[start:end]
    text = " ".join(t.text for t in span)
    said = sum(not t.small or t.lemma in ("name", "number") for t in span)
    pieces = []
    for cue, members in (
        (Cue.TABLE, [k for k in group if k.column is None]),
        (Cue.COLUMN, [k for k in group if k.column is not None and not k.is_value]),
        (Cue.VALUE, [k for k in group if k.is_value]),
    ):
        if not members:
            continue
        top = max(k.score for k in members)
        worth = said * top + TOGETHER * (said - 1) + (0.02 if cue == Cue.TABLE else 0.0)
        if span[0].lemma == "number" and len(span) == 1:
            worth = 0.5
        if cue == Cue.VALUE:
            worth = _value_worth(span, said)
            if any(link.score == FLAG for link in members):
                worth = max(worth, said * FLAG)  # "can drive", where drivers are people too
        else:
            members = [k for k in group if not k.is_value]
        kept = tuple(sorted((k for k in members if k.score >= top - NEAR), key=lambda k: -k.score))
        piece = Piece(cue, start, end, text, links=kept, possessive=span[-1].possessive, quoted=span[0].quoted)
        pieces.append((worth, piece))
    return pieces


def _written_otherwise(piece: Piece) -> bool:
    """Whether the data has a word in capitals that the question has without, as where "state" meets State."""
    if any(link.score == FLAG for link in piece.values):
        return False
    return piece.text.islower() and not any(str(link.value).islower() for link in piece.values)


def _value_worth(span: Sequence[Token], said: int) -> float:
    if span[0].quoted:
        return 4.0
    capitals = sum(t.capital or t.number is not None for t in span)
    start = span[0].start == 0
    return 1.06 * len(span) if capitals >= (len(span) + 1) // 2 and not start else 0.85 * max(said, 1)


def _cue(tokens: Sequence[Token], start: int, pattern: Pattern) -> Piece:
    end = start + len(pattern.words)
    return Piece(pattern.cue, start, end, " ".join(t.text.lower() for t in tokens[start:end]), pattern.payload)


def _stands_for_something(tokens: Sequence[Token], start: int) -> bool:
    """Whether "one" is no number: "the November one", "which one", "the one that"."""
    after = tokens[start + 1] if start + 1 < len(tokens) else None
    ends = after is None or after.small or not after.text[:1].isalnum()
    said = [token.text.lower() for token in tokens[max(0, start - 3) : start]]
    return ends and bool(said) and (said[-1] in POINTING or not POINTED.isdisjoint(said))


def _word(tokens: Sequence[Token], start: int) -> Piece:
    token = tokens[start]
    if token.quoted:
        return Piece(Cue.VALUE, start, start + 1, token.text, quoted=True)
    if token.text.lower() == "one" and _stands_for_something(tokens, start):
        return Piece(Cue.WORD, start, start + 1, "it")
    if token.number is not None:
        return Piece(Cue.NUMBER, start, start + 1, token.text, number=token.number)
    return Piece(Cue.WORD, start, start + 1, token.lemma)
