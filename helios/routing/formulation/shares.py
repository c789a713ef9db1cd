"""Percentages: "what percentage of bookings were cancelled" counts those among all bookings."""

from collections.abc import Sequence

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.pieces import Piece

SHARES = ("percentage", "percent", "proportion", "share", "%")
"""Words that ask for a part of a whole."""
VERBS = ("be", "have", "has", "had", "do", "did", "go", "come", "who", "that", "with", "without")
"""Words behind which it is said what the part is."""

NAMED = 0.9
"""A score above which a column is called so itself."""


def with_shares(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with "percentage of" as a count, with the token from which on the part is described."""
    found = list(pieces)
    for place, piece in enumerate(found[:-1]):
        following = found[place + 1]
        least = 0.0 if piece.text in ("share", "proportion") else NAMED
        named = piece.cue == Cue.COLUMN and any(link.score > least for link in piece.links)
        if piece.cue not in (Cue.WORD, Cue.COLUMN) or named or piece.text not in SHARES or following.text != "of":
            continue
        whole = next((n for n in range(place + 2, len(found)) if found[n].cue in (Cue.TABLE, Cue.COLUMN)), None)
        part = next((p.start for p in found[(whole or 0) + 1 :] if p.text in VERBS), None)
        if whole is None or found[whole].cue != Cue.TABLE or part is None:
            return found
        return [*found[:place], Piece(Cue.COUNT, piece.start, following.end, "number of", part), *found[place + 2 :]]
    return found
