"""English cues in a row of mentions: how many rows, which comparison, which end of an order, which aggregate.

For property graphs alone: labels, verbs and values are known before cues are looked for. Questions over tables are
cut by their cues first (`cues`), because there a word may still be several columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from helios.routing.formulation.entity_linking import FUNCTION_WORDS
from helios.routing.formulation.graph_plan import Aggregate, Operator
from helios.routing.formulation.graph_vocabulary import Kind, Mention
from helios.routing.formulation.word_forms import same_verb

LIMITING = frozenset(
    [
        "top",
        "first",
        "which",
        "what",
        "the",
        "list",
        "find",
        "name",
        "show",
        "identify",
        "give",
        "display",
        "retrieve",
        "only",
        "any",
        "to",
        "last",
    ]
)
MORE = frozenset(
    [
        "more",
        "greater",
        "higher",
        "larger",
        "over",
        "above",
        "exceeding",
        "exceeds",
        "after",
        "later",
        "since",
        "bigger",
        "longer",
        "older",
    ]
)
LESS = frozenset(
    ["less", "fewer", "lower", "smaller", "under", "below", "before", "earlier", "shorter", "cheaper", "younger"]
)
MOST = frozenset(
    [
        "most",
        "highest",
        "largest",
        "greatest",
        "biggest",
        "maximum",
        "max",
        "best",
        "top",
        "latest",
        "newest",
        "longest",
    ]
)
LEAST = frozenset(["least", "fewest", "lowest", "smallest", "minimum", "min", "worst", "earliest", "shortest"])
ADJECTIVES: dict[str, tuple[tuple[str, ...], bool]] = {
    "expensive": (("price", "cost", "amount", "fee"), True), "costly": (("price", "cost", "amount"), True),
    "priciest": (("price", "cost"), True), "cheapest": (("price", "cost", "fee"), False),
    "oldest": (("born", "birth", "birthday", "birthdate", "founded", "opened", "built", "established", "released",
                "created", "creation", "date", "year"), False),
    "youngest": (("born", "birth", "birthday", "birthdate", "founded"), True),
    "newest": (("released", "created", "creation", "opened", "built", "founded", "date", "year", "published"), True),
    "recent": (("released", "created", "creation", "date", "year", "published", "born"), True),
    "recently": (("released", "created", "creation", "date", "year", "published"), True),
    "latest": (("released", "created", "creation", "date", "year", "published"), True),
    "earliest": (("released", "created", "creation", "date", "year", "published"), False),
    "longest": (("length", "duration", "runtime", "distance", "minutes", "hours", "days"), True),
    "shortest": (("length", "duration", "runtime", "distance", "minutes", "hours", "days"), False),
    "tallest": (("height",), True),
    "heaviest": (("weight",), True),
    "largest": (("size", "area", "population", "capacity"), True),
    "valuable": (("value", "worth"), True),
}  # fmt: skip
"""What an adjective in a superlative compares, and whether the largest values come first."""
COMPARED: dict[str, tuple[str, ...]] = {
    "longer": ("length", "duration", "runtime", "distance"), "shorter": ("length", "duration", "runtime", "distance"),
    "older": ("age",), "younger": ("age",), "cheaper": ("price", "cost", "fare", "fee"), "taller": ("height",),
    "heavier": ("weight",), "faster": ("speed",), "bigger": ("size", "area", "population", "capacity"),
    "larger": ("size", "area", "population", "capacity"), "smaller": ("size", "area", "population", "capacity"),
}  # fmt: skip
"""What an adjective in a comparative compares."""
NEGATIONS = frozenset((
    "not", "no", "never", "without", "none", "isn't", "aren't", "wasn't", "weren't", "hasn't", "haven't", "don't",
    "doesn't", "didn't",
))  # fmt: skip
COMMON = frozenset(["common", "commonly", "frequent", "frequently", "often", "popular", "used", "active", "prolific"])
COUNTING = frozenset(["number", "count", "amount", "quantity", "total", "numbers", "counts", "times"])
PARTS = {
    "containing": "CONTAINS", "contains": "CONTAINS", "contain": "CONTAINS", "including": "CONTAINS",
    "includes": "CONTAINS", "include": "CONTAINS", "mentions": "CONTAINS", "mentioning": "CONTAINS",
    "mentioned": "CONTAINS", "starts": "STARTS WITH", "starting": "STARTS WITH", "start": "STARTS WITH",
    "begins": "STARTS WITH", "beginning": "STARTS WITH", "begin": "STARTS WITH", "ends": "ENDS WITH",
    "ending": "ENDS WITH", "end": "ENDS WITH", "described": "CONTAINS", "word": "CONTAINS", "phrase": "CONTAINS",
}  # fmt: skip
QUOTING = ("word", "words", "phrase", "text", "string", "substring", "letter", "letters")
"""What is named by them is meant literally."""
LINKING = frozenset((
    "than", "each", "per", "based", "order", "ordered", "ordering", "sorted", "by", "between", "exactly", "equal",
    "average", "mean", "total", "sum", "how", "many", "much", "including", "along", "database", "dataset", "graph",
    "platform", "system", "different", "distinct", "unique", "first", "display", "identify", "provide", "retrieve",
    "name", "show", "give", "across", "received", "made", "which", "both", "same", "only", "currently", "still",
    "also", "ever", "value", "values", "limit", "limited", "present", "available", "least", "given", "node", "nodes",
    "relationship", "relationships", "list", "found", "located", "based", "considering", "they", "them", "but",
    "placed", "listed", "involved", "associated", "related", "belong", "belongs", "belonging", "appear", "appears",
    "appeared", "appearing", "named", "titled", "called", "either", "among", "terms", "term", "year", "years",
    "having", "whose",
))  # fmt: skip
FILLERS = FUNCTION_WORDS.union(
    MORE, LESS, MOST, LEAST, COMMON, COUNTING, NEGATIONS, ADJECTIVES, PARTS, LINKING
)  # fmt: skip
"""Words that need no reading: a plan that leaves them out is still whole."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers compared: the mention of the first number, and what [start, end) of the row says it."""

    operators: tuple[tuple[Operator, float | int], ...]
    start: int
    end: int
    year: bool


@dataclass(frozen=True, slots=True)
class Superlative:
    """An end of an order: `most`, `fewest`, `oldest`."""

    at: int
    descending: bool
    compares: tuple[str, ...] = ()
    """Words that name what an adjective compares; empty for most, least, highest."""


def row_limit(row: Sequence[Mention]) -> tuple[int | None, int | None]:
    """How many rows are asked for and where that stands: `top 5`, `which 3`, `the three oldest`."""
    for i, mention in enumerate(row):
        if mention.kind is not Kind.NUMBER or not isinstance(mention.value, int) or not 0 < mention.value <= 100:
            continue
        before = row[i - 1].word if i else "list"
        after = row[i + 1] if i + 1 < len(row) else None
        if before in LIMITING and after is not None and (i + 1 < len(row)) and before not in MORE:
            return mention.value, i
    return None, None


def comparisons(row: Sequence[Mention], skipped: int | None) -> list[Comparison]:
    """Comparisons with numbers, in order."""
    found = []
    for i, mention in enumerate(row):
        if i == skipped:
            continue
        decade = _decade(mention.word)
        if decade is not None:
            found.append(Comparison(((">=", decade), ("<", decade + 10)), _from_words(row, i), i + 1, True))
        elif mention.kind is Kind.NUMBER and isinstance(mention.value, int | float):
            if found and found[-1].end > i:
                continue
            found.append(_comparison(row, i, mention.value))
    return found


def superlatives(row: Sequence[Mention]) -> list[Superlative]:
    """Ends of orders, in order; `top 5` alone is none."""
    found = []
    for i, mention in enumerate(row):
        word = mention.word
        after = row[i + 1].word if i + 1 < len(row) else ""
        if mention.kind is not Kind.WORD and word not in MOST | LEAST:
            continue
        if i and row[i - 1].word == "at" and word in ("most", "least"):
            continue
        if word in ("most", "least") and after in ADJECTIVES:
            words, descending = ADJECTIVES[after]
            found.append(Superlative(i + 1, descending if word == "most" else not descending, words))
        elif word in ADJECTIVES and (not found or found[-1].at != i):
            found.append(Superlative(i, ADJECTIVES[word][1], ADJECTIVES[word][0]))
        elif word in MOST and word != "top":
            found.append(Superlative(i, True))
        elif word in LEAST:
            found.append(Superlative(i, False))
    return found


def aggregate_of(row: Sequence[Mention], at: int) -> Aggregate | None:
    """The aggregate that the words just before a mention name: `average rating`, `total freight`."""
    for mention in reversed(row[max(0, at - 3) : at]):
        if mention.word in ("average", "avg", "mean"):
            return "avg"
        if mention.word in ("total", "sum", "combined", "overall"):
            return "sum"
        if mention.word in ("maximum", "max"):
            return "max"
        if mention.word in ("minimum", "min"):
            return "min"
        if mention.kind not in (Kind.WORD, Kind.RELATIONSHIP, Kind.LABEL):
            break
    return None


def counted(row: Sequence[Mention], at: int) -> bool:
    """Whether the words just before a mention say that it is counted: `how many`, `number of`, `count of`."""
    before = [mention.word for mention in row[max(0, at - 4) : at]]
    if before[-2:] == ["how", "many"]:
        return True
    many = next((i for i in range(at - 1, max(0, at - 4), -1) if row[i].word == "many"), None)
    if many and row[many - 1].word == "how":
        kinds = (Kind.PROPERTY, Kind.VALUE, Kind.LABEL)
        return all(m.kind in kinds or m.word in ("different", "distinct", "unique") for m in row[many + 1 : at])
    for i, word in enumerate(before):
        if word in ("number", "count", "numbers") and all(
            other in ("of", "the", "total", "different", "distinct", "unique", "their", "all")
            for other in before[i + 1 :]
        ):
            return True
    return False


def negated(row: Sequence[Mention], at: int) -> bool:
    """Whether a negation stands shortly before a mention."""
    return any(mention.word in NEGATIONS for mention in row[max(0, at - 3) : at])


def part_operator(row: Sequence[Mention], at: int) -> Operator:
    """How a quoted text compares: contained, at the start, or equal."""
    for mention in reversed(row[max(0, at - 4) : at]):
        if mention.word in PARTS:
            return PARTS[mention.word]  # type: ignore[return-value]
    return "="


def _comparison(row: Sequence[Mention], i: int, amount: float | int) -> Comparison:
    year = isinstance(amount, int) and 1700 <= amount <= 2100
    before = [mention.word for mention in row[max(0, i - 4) : i]]
    upper = row[i + 2].value if i + 2 < len(row) else None
    if isinstance(upper, int | float) and (
        "between" in before[-3:] or (before[-1:] == ["from"] and row[i + 1].word in ("to", "until"))
    ):
        return Comparison(((">=", amount), ("<=", upper)), i - 1, i + 3, year)
    words = before[-3:]
    if words[-2:] == ["at", "least"]:
        return Comparison(((">=", amount),), i - 2, i + 1, year)
    if words[-2:] == ["at", "most"] or words[-2:] == ["up", "to"]:
        return Comparison((("<=", amount),), i - 2, i + 1, year)
    for back, word in enumerate(reversed(words), 1):
        if word in MORE:
            return Comparison(((">", amount),), i - back, i + 1, year)
        if word in LESS:
            return Comparison((("<", amount),), i - back, i + 1, year)
        if word not in ("than", "of", "a", "the", "to", "year", "value"):
            break
    after = [mention.word for mention in row[i + 1 : i + 3]]
    if after == ["or", "more"] or after == ["or", "higher"]:
        return Comparison(((">=", amount),), i, i + 3, year)
    if after == ["or", "less"] or after == ["or", "fewer"]:
        return Comparison((("<=", amount),), i, i + 3, year)
    return Comparison((("=", amount),), _from_words(row, i), i + 1, year)


def _decade(word: str) -> int | None:
    return int(word[:4]) if len(word) == 5 and word[:4].isdigit() and word.endswith("0s") else None


def _from_words(row: Sequence[Mention], i: int) -> int:
    start = i
    while start and row[start - 1].kind is Kind.WORD and row[start - 1].word in (
        "in", "the", "of", "exactly", "equal", "to", "during", "is", "as", "specified",
    ):  # fmt: skip
        start -= 1
    return start


def names_of(word: str, names: Sequence[str]) -> bool:
    """Whether a word is a form of one of the names."""
    return any(same_verb(word, name) for name in names)
