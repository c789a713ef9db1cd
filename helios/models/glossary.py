"""German, French, Spanish and Chinese word by word in English, for models that were trained on English.

    wie viele Lieferungen kamen zu spät ?     how many deliveries came too late ?

The base model has read English alone: a word of another language is to it a row of letters. So what it reads of a text
in one of these languages is the English of each word that a glossary has, at the word's own place: an answer or a match
still is characters of the text as it stands. A glossary is a list that people can read and mend,
`glossaries/CODE.tsv`: a word or a few, its usual English, and the word's stem.
"""

import re
import threading
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources
from itertools import chain
from typing import Any, NamedTuple

import Stemmer

from helios.index.languages import COMMON, UNSPACED, recognise, without_accents

NAMES = {"de": "german", "es": "spanish", "fr": "french"}
"""Languages whose words have stems, by ISO 639-1 code."""
LANGUAGES = (*NAMES, "zh")
VERSION = 2
"""Of what is done with the glossaries; another where texts are read otherwise."""
PART, LONGEST_GAP = 4, 2
"""Letters of a part of a compound, and of what may stand between two parts, as an s or es: at least, at most."""
COMPOUND = 24
"""Letters of a compound that is taken apart, at most."""
LEAST_KNOWN = 0.3
"""Share of a text's words that a list has, below which it is in another language: Italian has words of Spanish."""
READ = 2000
"""Characters of a text that tell its language, at most."""
APOSTROPHES = ("'", "’")
"""A single letter is a word before one, as in l'an; elsewhere it is the name of something."""
_THREAD = threading.local()
_WORDS = rf"(?:[^\W\d_{UNSPACED}][\u0300-\u036f]*)+|[{UNSPACED}]+"
_WORD = re.compile(_WORDS)
_CLOSED = (
    r"(?<![\w.+-])[a-z0-9_.+-]{1,64}@[a-z0-9.-]+|\b(?:https?://|www\.)[!-~]+"
    r"|(?<!\w)[^\W_]{1,40}(?:[-_/][^\W_]{1,40}){0,8}[-_/]\d[\w/-]*"
)
"""Addresses and codes: what they are made of is not to be read. No character can be taken in two ways, or a long name
with underscores would be tried in all of them."""
_CLOSED_OR_WORD = re.compile(rf"{_CLOSED}|({_WORDS})", re.IGNORECASE)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_BETWEEN = re.compile(r"[\s'’-]{1,2}")
"""What may stand between the words of a phrase."""


class Piece(NamedTuple):
    """Characters [start, end) of a text, and the English that is read in their place."""

    start: int
    end: int
    english: str


@dataclass(frozen=True, slots=True, eq=False)
class Glossary:
    """The English of a language's words."""

    code: str
    words: Mapping[str, str]
    """By the word in small letters."""
    folded: Mapping[str, str]
    """By the word without its accents."""
    stems: Mapping[str, str]
    phrases: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    """Phrases by their first word: the words after it, and the English; longest first."""
    longest: int
    """Characters of the longest word of a language without blanks."""

    @classmethod
    def of_lines(cls, code: str, lines: Sequence[str]) -> "Glossary":
        """From `word TAB English [TAB stem]`."""
        words: dict[str, str] = {}
        folded: dict[str, str] = {}
        stems: dict[str, str] = {}
        phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for line in lines:
            word, english, *stem = line.rstrip("\n").split("\t")
            first, *rest = _WORD.findall(word)
            if rest:
                phrases.setdefault(first, []).append((tuple(rest), english))
                continue
            words.setdefault(first, english)
            folded.setdefault(_folded(first), english)
            if stem:
                stems.setdefault(stem[0], english)
        for own in phrases.values():
            own.sort(key=lambda phrase: -len(phrase[0]))
        longest = max(map(len, words), default=0) if code not in NAMES else 0
        return cls(code, words, folded, stems, phrases, longest)

    def knows(self, word: str) -> bool:
        """Whether it has a word, in small letters, as it stands or without accents."""
        return word in self.words or _folded(word) in self.folded

    def english(self, word: str) -> str:
        """The English of a word in small letters, or of the parts of a compound; empty where it has none."""
        return _english(self, word)

    def find(self, word: str) -> str:
        """The English of a word as it stands; of one with accents by its stem first, of others without accents."""
        stem = (self.stems, stem_of(self.code, word)) if self.stems else (self.stems, word)
        plain = (self.folded, _folded(word))
        places = ((self.words, word), *((plain, stem) if word.isascii() else (stem, plain)))
        return next((known[key] for known, key in places if key in known), "")

    def compound(self, word: str) -> str:
        """The English of the two parts of a compound, the longest last part first: Fehl+tage."""
        if self.code != "de" or not 2 * PART <= len(word) <= COMPOUND:
            return ""
        for cut in range(PART, len(word) - PART + 1):
            tail = self.find(word[cut:])
            if not tail:
                continue
            for gap in range(LONGEST_GAP + 1):
                head = word[: cut - gap]
                if len(head) < PART or (gap and word[cut - gap : cut] not in ("s", "n", "e", "es", "en", "er", "-")):
                    continue
                if known := self.find(head) or self.compound(head):
                    return f"{known} {tail}"
        return ""

    def pieces(self, text: str) -> Iterator[Piece]:
        """The words and phrases of a text that have English, in order."""
        runs = [
            (match.start(), match.end(), _small(match.group()))
            for match in _CLOSED_OR_WORD.finditer(text)
            if match.group(1)
        ]
        at = 0
        while at < len(runs):
            start, end, word = runs[at]
            if _UNSPACED.match(word):
                yield from self._unspaced(start, word)
            else:
                alone = len(word) > 1 or text[end : end + 1] in APOSTROPHES
                end, english, count = self._phrase(text, runs, at) or (end, self.english(word) if alone else "", 1)
                if english:
                    yield Piece(start, end, english)
                at += count - 1
            at += 1

    def _phrase(self, text: str, runs: Sequence[tuple[int, int, str]], at: int) -> tuple[int, str, int] | None:
        """Where the longest phrase that begins with a word ends, its English, and how many words it has."""
        for rest, english in self.phrases.get(runs[at][2], ()):
            own = runs[at : at + 1 + len(rest)]
            if tuple(word for _, _, word in own[1:]) == rest and all(
                _BETWEEN.fullmatch(text[before[1] : after[0]]) for before, after in zip(own, own[1:], strict=False)
            ):
                return own[-1][1], english, len(own)
        return None

    def _unspaced(self, start: int, run: str) -> Iterator[Piece]:
        """The longest words first, from the left; a character that is in none stands for itself."""
        at = 0
        while at < len(run):
            size = next(
                (n for n in range(min(self.longest, len(run) - at), 0, -1) if run[at : at + n] in self.words), 1
            )
            word = run[at : at + size]
            yield Piece(start + at, start + at + size, self.words.get(word, word))
            at += size


@dataclass(frozen=True, slots=True)
class Glossed:
    """A text in English, and what of the text as it stands each part of it is."""

    text: str
    ends: list[int]
    """Where each part ends in the English; a part is a word with its English, or what stands between two."""
    parts: list[tuple[int, int, int, bool]]
    """Where each begins in the English, the characters [start, end) that it is of the text as it stands, and whether it
    is a word with its English."""

    @classmethod
    def of(cls, text: str, pieces: Sequence[Piece]) -> "Glossed":
        """Put the English in the place of the pieces, with a blank where no blank parts two words."""
        built: list[str] = []
        ends: list[int] = []
        parts: list[tuple[int, int, int, bool]] = []
        length = before = 0
        for piece in (*pieces, Piece(len(text), len(text), "")):
            for start, end, shown, word in (
                (before, piece.start, text[before : piece.start], False),
                (piece.start, piece.end, piece.english, True),
            ):
                if not shown:
                    continue
                if built and not built[-1][-1:].isspace() and not shown[0].isspace():
                    built.append(" ")
                    length += 1
                parts.append((length, start, end, word))
                built.append(shown)
                length += len(shown)
                ends.append(length)
            before = piece.end
        return cls("".join(built), ends, parts)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the text as it stands that characters [start, end) of the English, of one part, are."""
        if not self.parts:
            return 0, 0
        begins, first, last, word = self.parts[min(bisect_right(self.ends, start), len(self.parts) - 1)]
        return (first, last) if word else (first + max(0, start - begins), min(last, first + end - begins))

    def characters(self, start: int, end: int) -> tuple[int, int]:
        """The same for characters of several parts."""
        return self.span(start, start + 1)[0], self.span(end - 1, end)[1]


class Tokens(NamedTuple):
    """Token numbers of a text, and the characters [start, end) of each."""

    ids: list[int]
    offsets: Sequence[tuple[int, int]]


def tokens_of(tokenizer: Any, texts: Sequence[str], language: str = "") -> list[Tokens]:
    """The tokens that a model trained on English reads of each text; their characters are those of the text itself.

    `language` is what the texts are in, where it is known; each tells its own if not.
    """
    glossed = [gloss(text, language) for text in texts]
    read = [text if own is None else own.text for text, own in zip(texts, glossed, strict=True)]
    found = []
    for own, encoding in zip(glossed, tokenizer.encode_batch(read, add_special_tokens=False), strict=True):
        offsets = encoding.offsets
        found.append(Tokens(encoding.ids, offsets if own is None else [own.span(*span) for span in offsets]))
    return found


def gloss(text: str, language: str = "") -> Glossed | None:
    """A text in English, word by word; None where it is in English, or in a language without a glossary."""
    code = language or language_of(text)
    if code not in LANGUAGES:
        return None
    pieces = list(glossary(code).pieces(text))
    return Glossed.of(text, pieces) if pieces else None


def language_of(text: str) -> str:
    """The language of a text by most of its words that some glossary has; empty where they tell none.

    Words of English are those that glossaries give. Names and numbers say nothing.
    """
    read = text[:READ]
    told = recognise(read)
    if told in ("en", "zh", "ja", "ko"):
        return told
    telling, known = {_small(word) for word in _WORD.findall(read) if len(word) > 1}, english_words()
    most = sum(word in known for word in telling)
    found = "en" if most else ""
    for code in NAMES:
        own = sum(map(glossary(code).knows, telling))
        if own > most and own >= LEAST_KNOWN * len(telling):
            found, most = code, own
    return found


@cache
def glossary(code: str) -> Glossary:
    """That of a language of `LANGUAGES`, read once a process."""
    lines = resources.files("helios.models").joinpath("glossaries", f"{code}.tsv").read_text(encoding="utf-8")
    return Glossary.of_lines(code, lines.splitlines())


@cache
def glossaries_digest() -> str:
    """The SHA-256 of all glossaries and of what is done with them, in short."""
    files = [resources.files("helios.models").joinpath("glossaries", f"{code}.tsv") for code in LANGUAGES]
    told = repr((VERSION, Stemmer.version(), COMMON)).encode()
    return sha256(b"\n".join([told, *(file.read_bytes() for file in files)])).hexdigest()[:16]


@cache
def english_words() -> frozenset[str]:
    """Words that are English: what the glossaries give, and those that tell it."""
    given = chain.from_iterable(glossary(code).words.values() for code in LANGUAGES)
    return frozenset(chain(COMMON["en"], chain.from_iterable(map(str.split, given))))


@lru_cache(maxsize=65536)
def _english(own: Glossary, word: str) -> str:
    return own.find(word) or own.compound(word)


@lru_cache(maxsize=65536)
def stem_of(code: str, word: str) -> str:
    """What is left of a word without its endings, and without accents."""
    return _folded(_stemmer(code).stemWord(word))


def _stemmer(code: str) -> Any:
    """One a thread: it keeps the word that it works on."""
    own: dict[str, Any] = _THREAD.__dict__.setdefault("stemmers", {})
    if code not in own:
        own[code] = Stemmer.Stemmer(NAMES[code])
    return own[code]


def _small(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFC", word).lower()


def _folded(word: str) -> str:
    return word if word.isascii() else without_accents(word.replace("ß", "ss"))
