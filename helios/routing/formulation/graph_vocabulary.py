"""What the words of a question stand for in a property graph: labels, relationships, properties, stored values.

The question becomes a row of mentions, each of one or more tokens; what is left are plain words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from helios.executors.values import Value
from helios.routing.formulation.entity_linking import FUNCTION_WORDS, similarity
from helios.routing.formulation.schema import UNIT_SHORT
from helios.routing.formulation.word_forms import agent, name_words, number, same_noun, same_verb, singular
from helios.sources.base import Source
from helios.sources.descriptor import Column, GraphSchema

TOKEN = re.compile(
    r"[‘'\"“](?P<quoted>[^'\"”’]+(?:'[a-z][^'\"”’]*)*)[’'\"”](?![a-z])|[$€£]?-?\d[\d,]*(?:\.\d+)?s?|[^\W_]+(?:['’_-][^\W_]+)*"
)
OWN = re.compile(r"['’]s$|(?<=s)['’]$")
PERSON_WORDS = frozenset({"who", "whom", "whose", "person", "somebody", "someone", "anyone"})
PERSON_LABELS = ("person", "user", "people", "member", "employee", "author", "customer", "player", "human")
MAX_VALUE_WORDS = 7
SHORT = {
    "temp": "temperature",
    "avg": "average",
    "qty": "quantity",
    "amt": "amount",
    "desc": "description",
    "yr": "year",
}
"""What names of properties shorten."""
VERB_FORM = 0.89
"""How far another form of its verb names a property: a relationship of that verb goes first."""
UNITS = frozenset(
    [
        "km",
        "m",
        "cm",
        "mm",
        "mile",
        "meter",
        "metre",
        "kg",
        "g",
        "lb",
        "ton",
        "usd",
        "eur",
        "gbp",
        "dollar",
        "euro",
        "percent",
        "pct",
        "hour",
        "minute",
        "second",
        "c",
        "celsius",
        "l",
        "kw",
        "mw",
        "ha",
        "t",
        "h",
        "min",
    ]
)
"""What stands behind a property's name and need not be said: lengthKm."""


class Kind(StrEnum):
    """What a mention stands for."""

    LABEL = "label"
    RELATIONSHIP = "relationship"
    PROPERTY = "property"
    VALUE = "value"
    NUMBER = "number"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens [start, end) of the question and what they stand for."""

    kind: Kind
    text: str
    start: int
    end: int
    name: str = ""
    """The label or the relationship type."""
    places: tuple[tuple[str, str], ...] = ()
    """(label or relationship type, property) of a property or a value."""
    value: Value = None
    quoted: bool = False
    exact: bool = True

    @property
    def word(self) -> str:
        return self.text.lower()


@dataclass(frozen=True, slots=True)
class Owned:
    """A property with the label or relationship type that has it."""

    owner: str
    column: Column
    words: tuple[str, ...]


class GraphVocabulary:
    """The names of a property graph as words; made once a source."""

    def __init__(self, schema: GraphSchema, *, repeated: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.schema = schema
        self.repeated = repeated
        """(label, property) whose values many nodes share: such a property names no node."""
        self.labels = {label.name: label for label in schema.labels}
        self.relationships = {relationship.name: relationship for relationship in schema.relationships}
        self.properties = [
            Owned(owner.name, column, _spelt_out(column.name)) for owner in schema.labels for column in owner.properties
        ]
        seen = set()
        for relationship in schema.relationships:
            for column in relationship.properties:
                if (relationship.name, column.name) not in seen:
                    seen.add((relationship.name, column.name))
                    self.properties.append(Owned(relationship.name, column, _spelt_out(column.name)))

    def person_label(self) -> str | None:
        """The label whose nodes are people, by its name."""
        for wanted in PERSON_LABELS:
            for name in self.labels:
                if singular(name_words(name)[-1]) == wanted:
                    return name
        return None

    def display(self, label: str) -> str | None:
        """The property that names a node of a label: a name or a title, the label's own before others."""
        columns = [c.name for c in self.labels[label].properties if (label, c.name) not in self.repeated]
        own = name_words(label)
        ranked = sorted(columns, key=lambda name: (_naming(name_words(name), own), columns.index(name)))
        return ranked[0] if ranked and _naming(name_words(ranked[0]), own) < 9 else None

    def count_of(self, counted: str, owner: str) -> Column | None:
        """The property of a label that keeps how many nodes of another it has: answer_count of answers."""
        wanted = (*map(singular, name_words(counted)), "count")
        for owned in self.properties:
            if owned.owner == owner and tuple(map(singular, owned.words)) in (wanted, ("number", "of", *wanted[:-1])):
                return owned.column
        return None

    def column(self, owner: str, name: str) -> Column:
        return next(p.column for p in self.properties if p.owner == owner and p.column.name == name)

    def read(self, question: str, source: Source) -> list[Mention]:
        """The question as mentions and plain words, from the first token to the last."""
        tokens = [(match["quoted"] or match[0], match["quoted"] is not None) for match in TOKEN.finditer(question)]
        taken: list[Mention] = []
        values = _stored_values(tokens, source)
        start = 0
        while start < len(tokens):
            mention = self._mention(tokens, start, values)
            taken.append(mention)
            start = mention.end
        return taken

    def _mention(self, tokens: list[tuple[str, bool]], start: int, values: list[Mention]) -> Mention:
        text, is_quoted = tokens[start]
        starting = max((v for v in values if v.start == start), key=lambda v: v.end, default=None)
        named = self._property(tokens, start) or self._denied(tokens, start)
        if is_quoted:
            return self._quoted(text, start, starting)
        plain = starting if starting is not None and not starting.exact else None
        if plain is not None and plain.end - start == 1:
            starting = None
        if starting is not None and (named is None or starting.end - starting.start > named.end - named.start):
            return starting
        if named is not None and named.exact and named.end - start > 1:
            return named
        label = self._label(tokens, start)
        if label is not None:
            return label
        if named is not None and named.exact:
            return named
        relationship = self._relationship(tokens, start)
        if relationship is not None:
            return relationship
        if named is not None:
            return named
        naming = self._naming_word(text, start)
        if naming is not None:
            return naming
        if plain is not None:
            return plain
        amount = number(text)
        if amount is not None:
            return Mention(Kind.NUMBER, text, start, start + 1, value=amount)
        return Mention(Kind.WORD, text, start, start + 1)

    def _denied(self, tokens: list[tuple[str, bool]], start: int) -> Mention | None:
        """ "Non-native", of a property that says whether a thing is native."""
        text, is_quoted = tokens[start]
        word = text.lower().removeprefix("non-")
        if is_quoted or word == text.lower():
            return None
        held = [p for p in self.properties if p.column.type.lower().startswith("bool") and _name_fit([word], p.words)]
        places = tuple((owned.owner, owned.column.name) for owned in held)
        return Mention(Kind.PROPERTY, text, start, start + 1, places=places) if places else None

    def _naming_word(self, text: str, start: int) -> Mention | None:
        """`names` and `titles` stand for the property that names a node."""
        if start == 0 or singular(text) not in ("name", "title"):
            return None
        shown = ((label, self.display(label)) for label in self.labels)
        places = tuple((label, name) for label, name in shown if name is not None and not name.lower().endswith("id"))
        return Mention(Kind.PROPERTY, text, start, start + 1, places=places) if places else None

    def _quoted(self, text: str, start: int, stored: Mention | None) -> Mention:
        if text in self.labels:
            return Mention(Kind.LABEL, text, start, start + 1, name=text)
        if text in self.relationships:
            return Mention(Kind.RELATIONSHIP, text, start, start + 1, name=text)
        places = tuple((p.owner, p.column.name) for p in self.properties if p.column.name.lower() == text.lower())
        if places:
            return Mention(Kind.PROPERTY, text, start, start + 1, places=places)
        return stored or Mention(Kind.VALUE, text, start, start + 1, value=text, quoted=True)

    def _label(self, tokens: list[tuple[str, bool]], start: int) -> Mention | None:
        for name in self.labels:
            words = name_words(name)
            spoken = [OWN.sub("", text) for text, is_quoted in tokens[start : start + len(words)] if not is_quoted]
            if len(spoken) == len(words) and all(map(same_noun, spoken, words)):
                return Mention(Kind.LABEL, tokens[start][0], start, start + len(words), name=name)
        person = self.person_label()
        if person is not None and singular(tokens[start][0]) in PERSON_WORDS:
            return Mention(Kind.LABEL, tokens[start][0], start, start + 1, name=person)
        return None

    def _relationship(self, tokens: list[tuple[str, bool]], start: int) -> Mention | None:
        """A verb as a relationship: the one of whose name most words are said, then the one that says no more."""
        text = tokens[start][0]
        if text in self.relationships:
            return Mention(Kind.RELATIONSHIP, text, start, start + 1, name=text)
        if text.lower() in FUNCTION_WORDS or len(text) < 3:
            return None
        found: dict[str, int] = {}
        for name in self.relationships:
            first, *rest = name_words(name)
            if first not in FUNCTION_WORDS and same_verb(text, first):
                following = [
                    word.lower() for word, is_quoted in tokens[start + 1 : start + 1 + len(rest)] if not is_quoted
                ]
                found[name] = 1 + len(rest) * (bool(rest) and following == rest)
        if not found:
            return None
        name = min(found, key=lambda name: (-found[name], len(name)))
        return Mention(Kind.RELATIONSHIP, text, start, start + found[name], name=name, exact=not agent(text))

    def _property(self, tokens: list[tuple[str, bool]], start: int) -> Mention | None:
        best: tuple[float, int, list[Owned]] = (0.0, 0, [])
        for owned in self.properties:
            for length in range(min(4, len(tokens) - start), 0, -1):
                if length == 1 and _counting(tokens, start):
                    continue
                if any(is_quoted for _, is_quoted in tokens[start : start + length]):
                    continue
                spoken = [
                    part for text, _ in tokens[start : start + length] for part in text.lower().split("-") if part
                ]
                fit = _name_fit(spoken, owned.words)
                if fit and (fit, length) > best[:2]:
                    best = (fit, length, [owned])
                elif fit and (fit, length) == best[:2]:
                    best[2].append(owned)
        fit, length, found = best
        if not found:
            return None
        text = " ".join(text for text, _ in tokens[start : start + length])
        places = tuple((owned.owner, owned.column.name) for owned in found)
        return Mention(Kind.PROPERTY, text, start, start + length, places=places, exact=fit >= 0.9)


def _spelt_out(name: str) -> tuple[str, ...]:
    """The words of a property's name, with what is usually shortened in full: water_temp_c."""
    return tuple(SHORT.get(word, word) for word in name_words(name))


def _counting(tokens: Sequence[tuple[str, bool]], start: int) -> bool:
    """Whether "number" counts what follows: "the number of seats"."""
    following = tokens[start + 1][0].lower() if start + 1 < len(tokens) else ""
    return tokens[start][0].lower() in ("number", "numbers") and following == "of"


def _naming(words: Sequence[str], own: Sequence[str]) -> int:
    """How well a property names its node, 0 best; 9 for not at all."""
    match tuple(words):
        case (("name" | "title"),):
            return 0
        case (*rest, ("name" | "title")) if tuple(rest) == tuple(own):
            return 1
        case (*_, "name"):
            return 2
        case (*_, "title"):
            return 3
        case (*rest, "id") if tuple(rest) == tuple(own):
            return 4
    return 9


def _name_fit(spoken: Sequence[str], words: Sequence[str]) -> float:
    """1 for the same words, less for the telling part of them, 0 for others."""
    if not spoken or spoken[0] in FUNCTION_WORDS or spoken[-1] in FUNCTION_WORDS:
        return 0.0
    if len(spoken) == len(words) and all(map(same_noun, spoken, words)):
        return 1.0
    said = [singular(word) for word in spoken]
    name = [singular(word) for word in words]
    if "".join(spoken) == "".join(words):
        return 1.0
    if [word for word in said if word not in FUNCTION_WORDS] == [word for word in name if word not in ("is", "has")]:
        return 0.95
    if len(name) == 1 and len(said) <= 2 and same_verb(said[0], name[0]) and said[-1] in (said[0], "year", "date"):
        return VERB_FORM if len(said) == 1 else 0.9
    if len(name) > 1 and name[-1] in UNITS and said == name[:-1]:
        return 0.95
    if len(name) > 1 and said[:-1] == name[:-1] and name[-1] == UNIT_SHORT.get(said[-1]):
        return 0.95
    if len(name) > 1 and len(said) == 1 and name[-1] == UNIT_SHORT.get(said[0]):
        return 0.7  # "at which kilometre", of river_km
    if len(said) == 1 and len(name) == 2 and len(said[0]) > 3 and said[0] not in ("unit", "user", "number"):
        if said[0] == name[1] and name[1] not in ("name", "id", "count", "level", "date"):
            return 0.7
        if said[0] == name[0] and name[1] in ("count", "date", "number", "level"):
            return 0.7
        if name[1] == "count" and same_verb(said[0], name[0]):
            return 0.6
    return 0.0


def _stored_values(tokens: list[tuple[str, bool]], source: Source) -> list[Mention]:
    """Runs of tokens that are stored values: quoted ones, and capitalised ones that begin no sentence."""
    runs: dict[str, list[tuple[int, int, bool]]] = {}
    for start, (text, is_quoted) in enumerate(tokens):
        if is_quoted:
            runs.setdefault(text, []).append((start, start + 1, True))
            continue
        for end in range(start + 1, min(len(tokens), start + MAX_VALUE_WORDS) + 1):
            words = tokens[start:end]
            if any(quoted for _, quoted in words) or (start == 0 and end == 1):
                continue
            phrase = " ".join(word for word, _ in words)
            if _capitalised(words):
                runs.setdefault(phrase, []).append((start, end, False))
            elif _telling(words):
                for wording in dict.fromkeys((phrase, phrase.rpartition(" ")[0] + " " + singular(words[-1][0]))):
                    runs.setdefault(wording.strip(), []).append((start, end, False))
    mentions = []
    places: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for hit in source.find_values(tuple(runs), limit=8) if runs else ():
        if not runs[hit.phrase][0][2] and " " not in hit.phrase and hit.phrase != hit.value:
            continue
        if len(hit.place) == 2 and similarity(hit.phrase, hit.value) >= (0.9 if runs[hit.phrase][0][2] else 0.985):
            places.setdefault((hit.phrase, hit.value), []).append((hit.place[0], hit.place[1]))
    for (phrase, value), where in places.items():
        for start, end, is_quoted in runs[phrase]:
            named = is_quoted or _capitalised(tokens[start:end])
            if not named and value.lower() != phrase:
                continue
            mentions.append(
                Mention(
                    Kind.VALUE, phrase, start, end, places=tuple(dict.fromkeys(where)), value=value, quoted=is_quoted,
                    exact=named,
                )
            )  # fmt: skip
    return sorted(mentions, key=lambda m: (m.value != m.text, len(str(m.value))))


def _capitalised(words: Sequence[tuple[str, bool]]) -> bool:
    first, last = words[0][0], words[-1][0]
    return first[:1].isupper() and (last[:1].isupper() or last[:1].isdigit()) and first.lower() not in FUNCTION_WORDS


def _telling(words: Sequence[tuple[str, bool]]) -> bool:
    """Whether words without capitals may be a value: few, and none of the language's own at either end."""
    first, last = words[0][0], words[-1][0]
    ends = {first.lower(), last.lower()}
    return len(words) <= 3 and _ordinary(first) and _ordinary(last) and not ends & set(FUNCTION_WORDS)


def _ordinary(word: str) -> bool:
    """Whether a token is an ordinary word in lower case."""
    return word.islower() and word.isalpha() and len(word) > 2
