"""Looking up a question's phrases among stored values: "ole group" finds the column that holds "Ole Group".

An inverted index from words to distinct values, blind to case, accents and punctuation. A word that no value has, or
that is spelled a little differently, reaches the words that share its character trigrams. What is indexed is capped
for each place and in all; `ValueLookup.capped` names the places that were cut.

Relational sources bring values of columns, graph sources those of properties, RDF sources the labels of entities.

Shape legend: N values, V distinct words, P places.
"""

import json
import logging
import os
import re
import threading
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.sources.base import ValueHit
from helios.sources.cache import SourceCache

log = logging.getLogger(__name__)

MAX_PLACE_VALUES = 20_000
"""Values of one column, property or predicate."""
MAX_VALUES = 500_000
MAX_VALUE_LENGTH = 200
"""Characters; longer texts are prose, which a corpus search is for."""
BUILD_SECONDS = 60.0
"""How long values are gathered; a statement under way then still ends by its own deadline."""
MAX_PHRASE_WORDS = 16
LEAST_SCORE = 0.3
SAME_WORDS_ELSEWHERE = 0.97
"""The most that a value gets that has not the phrase's words in the phrase's order."""
LEAST_LIKENESS = 0.6
"""Shared trigrams (Dice) from which another spelling counts."""
SPELLING_COST = 0.9
SPELLINGS = 20
WORD = re.compile(r"[^\W_]+")
LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ħ": "h"})
"""Letters that Unicode does not take apart into a base and an accent."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value, the place where it stands, and the entity that it names, if any (see `ValueHit`)."""

    place: tuple[str, ...]
    value: str
    entity: str = ""


def words_of(text: str) -> list[str]:
    """Words and numbers, without case and accents."""
    return WORD.findall(folded(text))


def folded(text: str) -> str:
    """Text without case and accents."""
    text = text.casefold()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
        text = text.translate(LETTERS).casefold()
    return text


@dataclass(frozen=True, slots=True)
class Postings:
    """Lists of numbers by key, one after the other: list k is numbers[offsets[k] : offsets[k + 1]]."""

    offsets: IntArray
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> "Postings":
        """Join lists in order."""
        numbers, ends = array("i"), array("q", [0])
        for entries in lists:
            numbers.extend(entries)
            ends.append(len(numbers))
        return cls(np.array(ends, np.int64), np.array(numbers, np.int32))

    def __getitem__(self, key: int) -> NDArray[np.int32]:
        return self.numbers[self.offsets[key] : self.offsets[key + 1]]

    def lengths(self) -> IntArray:
        """How long each list is."""
        return np.diff(self.offsets)


class ValueLookup:
    """The index over a source's values; immutable, so threads may share it."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self.places: tuple[tuple[str, ...], ...] = tuple(tuple(place) for place in about["places"])
        self.capped: tuple[tuple[str, ...], ...] = tuple(tuple(place) for place in about["capped"])
        """Places that hold more values than were indexed."""
        self._values, self._entities = _Texts(arrays, "value"), _Texts(arrays, "entity")
        self._place_of: NDArray[np.int32] = arrays["place_of"]
        self._hashes: NDArray[np.uint64] = arrays["hashes"]
        self._hashed: NDArray[np.int32] = arrays["hashed"]
        self._holders = Postings(arrays["word_offsets"], arrays["word_values"])
        self._trigrams: dict[str, int] = {trigram: i for i, trigram in enumerate(about["trigrams"])}
        self._spellings = Postings(arrays["trigram_offsets"], arrays["trigram_words"])
        self._words: list[str] = about["words"]
        self._number: dict[str, int] = {word: i for i, word in enumerate(self._words)}
        self._idf = np.log1p(len(self) / np.maximum(1, self._holders.lengths()))
        self._weight: NDArray[np.float64] = arrays["weights"]

    def __len__(self) -> int:
        return len(self._place_of)

    @classmethod
    def build(
        cls, values: Iterable[StoredValue], *, per_place: int = MAX_PLACE_VALUES, total: int = MAX_VALUES
    ) -> "ValueLookup":
        """Index values; repeated ones once, those beyond the caps not at all."""
        kept, capped = _capped(values, per_place, total)
        places = list(dict.fromkeys(stored.place for stored in kept))
        numbers = {place: i for i, place in enumerate(places)}
        words: dict[str, array[int]] = {}
        for i, stored in enumerate(kept):
            for word in dict.fromkeys(words_of(stored.value)):
                words.setdefault(word, array("i")).append(i)
        holders = Postings.of(words.values())
        idf = np.log1p(len(kept) / np.maximum(1, holders.lengths()))
        trigrams: dict[str, array[int]] = {}
        for number, word in enumerate(words):
            for trigram in _trigrams(word):
                trigrams.setdefault(trigram, array("i")).append(number)
        spellings = Postings.of(trigrams.values())
        hashes = np.array([_compact_hash(stored.value) for stored in kept], np.uint64)
        order = np.argsort(hashes, kind="stable")
        lengths = holders.lengths()
        weights = np.zeros(len(kept))
        np.add.at(weights, holders.numbers, np.repeat(idf, lengths))
        arrays = {
            **_Texts.arrays("value", [stored.value for stored in kept]),
            **_Texts.arrays("entity", [stored.entity for stored in kept]),
            "place_of": np.array([numbers[stored.place] for stored in kept], np.int32),
            "hashes": hashes[order], "hashed": order.astype(np.int32), "weights": weights,
            "word_offsets": holders.offsets, "word_values": holders.numbers,
            "trigram_offsets": spellings.offsets, "trigram_words": spellings.numbers,
        }  # fmt: skip
        return cls(arrays, {"places": places, "capped": capped, "trigrams": list(trigrams), "words": list(words)})

    def find(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """The values that resemble each phrase best, `limit` a phrase at most, best first."""
        return tuple(hit for phrase in dict.fromkeys(phrases) for hit in self._find(phrase, limit))

    def save(self, path: Path, fingerprint: str) -> None:
        """Write the index in one step; `fingerprint` tells for which state of the data it is."""
        about = {
            "fingerprint": fingerprint, "places": self.places, "capped": self.capped,
            "trigrams": list(self._trigrams), "words": self._words,
        }  # fmt: skip
        packed = np.frombuffer(json.dumps(about, ensure_ascii=False).encode("utf-8", "surrogatepass"), np.uint8)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with temporary.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            np.savez(file, about=packed, **self._arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)

    @classmethod
    def open(cls, path: Path, fingerprint: str) -> "ValueLookup | None":
        """Read an index; None where there is none, or for another state of the data."""
        try:
            with np.load(path) as file:
                about = json.loads(file["about"].tobytes().decode("utf-8", "surrogatepass"))
                if about["fingerprint"] != fingerprint:
                    return None
                return cls({name: file[name] for name in file.files if name != "about"}, about)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError) as error:
            log.warning("%s: cannot be read and is made anew (%s)", path, error)
            return None

    def _find(self, phrase: str, limit: int) -> list[ValueHit]:
        words = words_of(phrase)[:MAX_PHRASE_WORDS]
        scores = dict(self._similar(words, limit))
        compact = compacted(phrase)
        for value in self._same(phrase):
            text = self._values[value]
            if compacted(text) == compact:
                scores[value] = 1.0 if words_of(text) == words_of(phrase) else SAME_WORDS_ELSEWHERE
        stripped = phrase.strip()

        def order(value: int) -> tuple[float, bool, bool, int, int]:
            text = self._values[value]
            return (-scores[value], text != stripped, text.casefold() != stripped.casefold(), len(text), value)

        return [
            ValueHit(
                phrase, self._values[value], self.places[self._place_of[value]], round(scores[value], 4),
                self._entities[value],
            )
            for value in sorted(scores, key=order)[:limit]
        ]  # fmt: skip

    def _same(self, phrase: str) -> list[int]:
        """Values whose letters and digits may be the phrase's."""
        wanted = np.uint64(_compact_hash(phrase))
        first = int(np.searchsorted(self._hashes, wanted, "left"))
        last = int(np.searchsorted(self._hashes, wanted, "right"))
        return [int(value) for value in self._hashed[first:last]]

    def _similar(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Values that share words with a phrase: twice the shared weight over the weight of both (Dice)."""
        shared: dict[str, tuple[IntArray, NDArray[np.float64]]] = {}
        total = 0.0
        rarest = float(np.log1p(len(self)))
        for word in dict.fromkeys(words):
            number = self._number.get(word)
            total += rarest if number is None else float(self._idf[number])
            shared[word] = self._holding(word)
        if not len(self) or not shared:
            return []
        sums = np.zeros(len(self))
        for values, weights in shared.values():
            sums[values] += weights
        candidates = np.flatnonzero(sums)
        scores = np.minimum(2 * sums[candidates] / (total + self._weight[candidates]), SAME_WORDS_ELSEWHERE)
        candidates, scores = candidates[scores >= LEAST_SCORE], scores[scores >= LEAST_SCORE]
        best = np.argsort(-scores, kind="stable")[: 4 * limit + 16]
        return [(int(candidates[i]), float(scores[i])) for i in best]

    def _holding(self, word: str) -> tuple[IntArray, NDArray[np.float64]]:
        """Values that hold a word or another spelling of it, and what that is worth; each value once."""
        found = dict(self._spelled_like(word))
        if (number := self._number.get(word)) is not None:
            found[number] = 1.0
        if not found:
            return np.zeros(0, np.int64), np.zeros(0)
        values = np.concatenate([self._holders[number] for number in found]).astype(np.int64)
        weights = np.concatenate(
            [np.full(len(self._holders[number]), likeness * self._idf[number]) for number, likeness in found.items()]
        )
        order = np.lexsort((-weights, values))
        values, weights = values[order], weights[order]
        first = np.ones(len(values), bool)
        first[1:] = values[1:] != values[:-1]
        return values[first], weights[first]

    def _spelled_like(self, word: str) -> list[tuple[int, float]]:
        """Words of the values with most of this word's trigrams; numbers and short words have no spellings."""
        if len(word) < 4 or word.isdigit():
            return []
        trigrams = _trigrams(word)
        lists = [self._spellings[self._trigrams[trigram]] for trigram in trigrams if trigram in self._trigrams]
        if not lists:
            return []
        numbers, counts = np.unique(np.concatenate(lists), return_counts=True)
        promising = counts * 2 >= LEAST_LIKENESS * len(trigrams)
        found = []
        for number, count in zip(numbers[promising], counts[promising], strict=True):
            likeness = 2 * count / (len(trigrams) + len(_trigrams(self._words[number])))
            if likeness >= LEAST_LIKENESS and not self._words[number].isdigit():
                found.append((int(number), float(likeness) * SPELLING_COST))
        return sorted(found, key=lambda pair: -pair[1])[:SPELLINGS]


class LazyLookup:
    """A lookup that is read from disk or built when it is first needed, once, and saved."""

    def __init__(self, values: Callable[[], Iterable[StoredValue]], cache: SourceCache | None) -> None:
        self._values = values
        self._cache = cache
        self._lookup: ValueLookup | None = None
        self._lock = threading.Lock()

    def find(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """See `ValueLookup.find`; whoever calls while the index is built waits for it."""
        return self.get().find(phrases, limit=limit)

    def get(self) -> ValueLookup:
        """The index itself."""
        with self._lock:
            if self._lookup is None:
                self._lookup = self._saved() or self._built()
            return self._lookup

    def start(self) -> threading.Thread:
        """Build in the background."""
        thread = threading.Thread(target=self.get, name="value-lookup", daemon=True)
        thread.start()
        return thread

    def forget(self) -> None:
        """The data has changed: build again when next needed."""
        with self._lock:
            self._lookup = None
            path = self._cache.path("values.npz") if self._cache else None
            if self._cache and path:
                with self._cache.writing(path):
                    path.unlink(missing_ok=True)

    def _saved(self) -> ValueLookup | None:
        path = self._cache.path("values.npz") if self._cache else None
        return ValueLookup.open(path, self._cache.fingerprint) if self._cache and path else None

    def _built(self) -> ValueLookup:
        lookup = ValueLookup.build(_in_time(self._values(), BUILD_SECONDS))
        path = self._cache.path("values.npz") if self._cache else None
        if self._cache and path:
            with self._cache.writing(path):
                lookup.save(path, self._cache.fingerprint)
        return lookup


def _in_time(values: Iterable[StoredValue], seconds: float) -> Iterator[StoredValue]:
    """The values that come within so many seconds; what is missing then is logged."""
    until = monotonic() + seconds
    for stored in values:
        if monotonic() > until:
            log.warning("values from %s on cannot be looked up: reading took %g s", ".".join(stored.place), seconds)
            return
        yield stored


class _Texts:
    """Many texts as one array of bytes."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._bytes: NDArray[np.uint8] = arrays[f"{name}_bytes"]
        self._offsets: IntArray = arrays[f"{name}_offsets"]

    def __getitem__(self, number: int) -> str:
        span = self._bytes[self._offsets[number] : self._offsets[number + 1]]
        return span.tobytes().decode("utf-8", "surrogatepass")

    @staticmethod
    def arrays(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The arrays that hold the texts, under their names."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return {f"{name}_bytes": np.frombuffer(b"".join(encoded), np.uint8), f"{name}_offsets": offsets}


def compacted(text: str) -> str:
    """Letters and digits alone; the text itself where it has none."""
    return "".join(words_of(text)) or text.strip()


def _compact_hash(text: str) -> int:
    digest = blake2b(compacted(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _trigrams(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def _capped(
    values: Iterable[StoredValue], per_place: int, total: int
) -> tuple[list[StoredValue], list[tuple[str, ...]]]:
    """Distinct values that are not empty and not prose, and the places that had more than they may."""
    kept: dict[StoredValue, None] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    capped: dict[tuple[str, ...], None] = {}
    for stored in values:
        if not stored.value.strip() or len(stored.value) > MAX_VALUE_LENGTH or stored in kept:
            continue
        if counts[stored.place] >= per_place or len(kept) >= total:
            capped[stored.place] = None
            continue
        counts[stored.place] += 1
        kept[stored] = None
    return list(kept), list(capped)
