"""Folding and tokenising for the linker: case and accents go, character offsets stay.

Folding is one character to one character, so a span of the folded text is a span of the original.
"""

import re
import unicodedata

from helios.index.languages import UNSPACED

TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
"""A word, or a character of a script without blanks: a name is then found within a sentence of it."""
_DISAMBIGUATOR = re.compile(r"^(.*\S)\s*\(([^()]+)\)\s*$")


class _FoldTable(dict[int, str]):
    """Maps a code point to its folded character, computed once per code point."""

    def __missing__(self, codepoint: int) -> str:
        character = chr(codepoint)
        base = character if "가" <= character <= "힣" else unicodedata.normalize("NFKD", character)[:1]
        lowered = (base or character).lower()
        folded = lowered if len(lowered) == 1 else character
        self[codepoint] = folded
        return folded


_FOLD = _FoldTable()


def fold(text: str) -> str:
    """Lower case without accents, with exactly as many characters as `text`."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def tokens(text: str) -> list[str]:
    """The folded letter-and-digit runs of a text, characters of scripts without blanks each alone."""
    return TOKEN.findall(fold(text))


def normalise(text: str) -> str:
    """The folded tokens joined by one blank: equal for texts that differ in case, accents and punctuation."""
    return " ".join(tokens(text))


def split_disambiguator(title: str) -> tuple[str, str]:
    """`Arthur Davis (gymnast)` → (`Arthur Davis`, `gymnast`); the second is empty where there is none."""
    match = _DISAMBIGUATOR.match(title)
    return (match.group(1), match.group(2)) if match else (title, "")


_COPULA = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of the)\s+([^.;:]{3,160})")
_NOUN_END = re.compile(
    r"\s(?:in|of|from|for|who|that|which|and|at|on|by|to|with|located|based|between|played|held|whose|situated"
    r"|created|written|directed|released|recorded|produced|currently|near|where|is|was|born|under|as)\s|[,(]"
)


def type_noun(text: str) -> str:
    """The head noun of a definition's first sentence (`... is an American actor who` → `actor`), or ''."""
    match = _COPULA.search(text[:400])
    if match is None:
        return ""
    phrase = match.group(1) + " "
    end = _NOUN_END.search(phrase)
    words = tokens(phrase[: end.start()] if end else phrase)
    return words[-1] if words else ""
