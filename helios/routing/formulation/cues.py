"""What English words say about a query over tables (SQL, and RDF built like tables): counting, comparing, ordering.

Property graphs are read by `question_cues`, whose cues stand in a row of mentions that are settled already.

A cue is a run of words with a kind and a payload; the longest one at a place wins. Gradable adjectives carry the
attributes that they grade ("older" is about an age), which are looked for among the columns.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from helios.routing.formulation.plan import Aggregate, Operator
from helios.routing.formulation.words import REQUESTED, Token


class Cue(StrEnum):
    """Kinds of pieces that a question is read as."""

    ASK = "ask"
    COUNT = "count"
    AGGREGATE = "aggregate"
    SUPERLATIVE = "superlative"
    COMPARE = "compare"
    NOT = "not"
    EACH = "each"
    ORDER = "order"
    DIRECTION = "direction"
    DISTINCT = "distinct"
    BOTH = "both"
    AND = "and"
    OR = "or"
    COMMA = "comma"
    RELATIVE = "relative"
    PREPOSITION = "preposition"
    LIKE = "like"
    COMMON = "common"
    TIMES = "times"
    END = "end"
    TABLE = "table"
    COLUMN = "column"
    VALUE = "value"
    NUMBER = "number"
    WORD = "word"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Grade:
    """What a comparative or superlative says."""

    more: bool
    attributes: tuple[str, ...] = ()
    """Nouns that the adjective grades; none for "more", "largest" of a named column."""
    any_type: bool = False
    """The attribute may be text."""
    inverse: tuple[str, ...] = ()
    """Nouns that run the other way: the oldest has the earliest birth date."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Words that make a cue."""

    words: tuple[str, ...]
    cue: Cue
    payload: object = None


OWNERS = ("its", "their", "his", "her")
"""Words that say whose something is."""
_ADJECTIVES: tuple[tuple[str, str, bool, str, str], ...] = (
    # comparatives, superlatives, more?, attributes, attributes that run the other way
    ("older", "oldest eldest", True, "age", "birth born founded built year_built launched opened established"),
    ("younger", "youngest", False, "age", "birth born"),
    ("heavier", "heaviest", True, "weight mass", ""),
    ("lighter", "lightest", False, "weight mass", ""),
    ("taller", "tallest", True, "height", ""),
    ("longer", "longest", True, "length duration distance time runtime minutes hours days", ""),
    ("shorter", "shortest", False, "length duration height distance time runtime minutes hours days", ""),
    ("larger bigger greater", "largest biggest greatest", True, "", ""),
    ("smaller lesser", "smallest", False, "", ""),
    ("higher", "highest", True, "", ""),
    ("lower", "lowest", False, "", ""),
    ("richer wealthier", "richest wealthiest", True, "worth money salary income wealth", ""),
    ("poorer", "poorest", False, "worth money salary income wealth", ""),
    ("pricier dearer costlier", "priciest costliest dearest", True, "price cost fare fee", ""),
    ("cheaper", "cheapest", False, "price cost fare fee", ""),
    ("faster quicker", "fastest quickest", True, "speed", "time duration"),
    ("slower", "slowest", False, "speed", "time duration"),
    ("stronger", "strongest", True, "strength power", ""),
    ("weaker", "weakest", False, "strength power", ""),
    ("later newer", "latest newest", True, "date time year", ""),
    ("earlier sooner", "earliest soonest", False, "date time year", ""),
    ("deeper", "deepest", True, "depth", ""),
    ("wider", "widest", True, "width", ""),
    ("hotter warmer", "hottest warmest", True, "temperature", ""),
    ("colder cooler", "coldest coolest", False, "temperature", ""),
    ("better", "best", True, "score rating points", "rank position ranking"),
    ("worse", "worst", False, "score rating points", "rank position ranking"),
)
SUPERLATIVES = tuple(word for _, superlatives, *_ in _ADJECTIVES for word in superlatives.split())
_PHRASES: tuple[tuple[str, Cue, object], ...] = (
    ("what/which/who/whom/show/list/find/give/return/tell/display/get/select/report/identify/name the/name all"
     "/please/provide/retrieve/determine/compute/calculate/what be/which be/describe", Cue.ASK, None),
    ("how many/number of/the number of/total number of/the total number of/count of/count the number of/count"
     "/amount of/how often"
     "/frequency/the frequency/number of times/how many times", Cue.COUNT, None),
    ("average/mean/avg/on average", Cue.AGGREGATE, Aggregate.AVG),
    ("total/sum/sum of/total amount of/combined/in total/overall/altogether", Cue.AGGREGATE, Aggregate.SUM),
    ("maximum/max/maximal", Cue.AGGREGATE, Aggregate.MAX),
    ("minimum/min/minimal", Cue.AGGREGATE, Aggregate.MIN),
    ("greater than or equal to/higher than or equal to/more than or equal to/larger than or equal to", Cue.COMPARE,
     Operator.GE),
    ("less than or equal to/lower than or equal to/smaller than or equal to/fewer than or equal to", Cue.COMPARE,
     Operator.LE),
    ("more than/over/above/exceed/exceeding/greater than/in excess of/after/later than/since than"
     "/larger in number than",
     Cue.COMPARE, Operator.GT),
    ("less than/fewer than/under/below/before/earlier than/prior to", Cue.COMPARE, Operator.LT),
    ("at least/no less than/no fewer than/not less than/minimum of/or more/or greater/or higher/or above"
     "/or later/since/on or after/no earlier than/not earlier than/not before"
     "/starting from/starting in", Cue.COMPARE, Operator.GE),
    ("at most/no more than/not more than/up to/or less/or fewer/or below/or lower/or earlier"
     "/not exceeding/on or before/no later than/not later than/not after", Cue.COMPARE,
     Operator.LE),
    ("between", Cue.COMPARE, Operator.BETWEEN),
    ("different from/differ from/not the same as/unlike", Cue.COMPARE, Operator.NE),
    ("exactly/equal to/equal/the same as/dates from/date from/dating from/dates back to"
     "/date back to", Cue.COMPARE, Operator.EQ),
    ("not/no/nobody/no one/nothing/never/without/don't/doesn't/didn't/isn't/aren't/wasn't/weren't/hasn't"
     "/haven't/cannot/lack/none of"
     "/other than/except/excluding/except for/besides/leave out/leaving out/ignoring/not counting/disregarding"
     "/not any/nor/neither", Cue.NOT, None),
    ("for each/each/per/every/for every/each of/for all different/of each/in each/by each/with each/grouped by"
     "/group by/for each of/respective/corresponding/broken down by", Cue.EACH, None),
    ("order by/ordered by/sort by/sorted by/ranked by/arranged by/listed by/rank by/arrange by/in order of/order of"
     "/in the order of/sorted in/ordered in/sort in/sorted/sort/ordered descending/ordered ascending"
     "/ordering/in order/sorted from"
     "/ordered from/sort them by/order them by/order the result by/sort the result by/in the order/by order of",
     Cue.ORDER, None),
    ("ascending/increasing/alphabetical/lexicographic/lexicographical/alphabetically/asc/alphabetic/from low to high"
     "/from lowest to highest/from the lowest to the highest/from small to large/from youngest to oldest"
     "/from earliest to latest/from the earliest to the latest/from least to most"
     "/from the youngest to the oldest/from young to old/from small to big/from short to long"
     "/from cheap to expensive/from light to heavy/from early to late",
     Cue.DIRECTION, False),
    ("descending/decreasing/reverse/desc/from high to low/from highest to lowest/from the highest to the lowest"
     "/from large to small/from oldest to youngest/from latest to earliest/from most to least"
     "/from the oldest to the youngest/from newest to oldest/reverse alphabetical/from old to young"
     "/reversed alphabetical/reversed lexicographical/reversed"
     "/from big to small/from long to short/from expensive to cheap"
     "/from heavy to light/from late to early/from new to old", Cue.DIRECTION, True),
    ("different/distinct/unique/various", Cue.DISTINCT, None),
    ("each one once/each once/only once/just once/without duplicates/no duplicates/without repeats/no repeats",
     Cue.DISTINCT, "once"),
    ("both", Cue.BOTH, None),
    ("and/as well as/along with/together with/and also/but/but also/plus/and the corresponding", Cue.AND, None),
    ("or/either", Cue.OR, None),
    (",/;/:", Cue.COMMA, None),
    ("?/./!/(/)", Cue.END, None),
    ("over all/over all the", Cue.PREPOSITION, None),
    ("whose/that/with/have/having", Cue.RELATIVE, None),
    ("of/in/for/from/by/to/at/on/as/within/across/among", Cue.PREPOSITION, None),
    ("contain/containing/include/including/contain the word/contain the substring/with the substring/with the letter"
     "/contain the letter/contain the phrase/contain the string/with the word/contain the text/the substring"
     "/the letter/the word/the phrase/the string/like/have the substring/have the word/have the letter"
     "/have substring/have letter/substring/letter/contain substring",
     Cue.LIKE, Operator.CONTAINS),
    ("start with/starting with/begin with/beginning with/start with the letter/begin with the letter"
     "/with the prefix/the prefix/starting with the letter/beginning with the letter", Cue.LIKE, Operator.STARTS),
    ("end with/ending with/end in/with the suffix/the suffix/ending in", Cue.LIKE, Operator.ENDS),
    ("most common/most frequent/most popular/most often/most frequently/most commonly"
     "/most prevalent", Cue.COMMON, True),
    ("least common/least frequent/least popular/least often/rarest/least frequently"
     "/most uncommon", Cue.COMMON, False),
    ("most recent/most recently/last", Cue.SUPERLATIVE, Grade(True, ("date", "time", "year"))),
    ("least recent/first", Cue.SUPERLATIVE, Grade(False, ("date", "time", "year"))),
    ("most expensive", Cue.SUPERLATIVE, Grade(True, ("price", "cost", "fare", "fee"))),
    ("best paid/highest paid/best-paid/highest-paid", Cue.SUPERLATIVE,
     Grade(True, ("salary", "wage", "pay", "income"))),
    ("worst paid/lowest paid/worst-paid/lowest-paid", Cue.SUPERLATIVE,
     Grade(False, ("salary", "wage", "pay", "income"))),
    ("least expensive", Cue.SUPERLATIVE, Grade(False, ("price", "cost", "fare", "fee"))),
    ("most populous/most populated", Cue.SUPERLATIVE, Grade(True, ("population",))),
    ("least populous/least populated", Cue.SUPERLATIVE, Grade(False, ("population",))),
    ("more expensive than", Cue.COMPARE, (Operator.GT, Grade(True, ("price", "cost", "fare", "fee")))),
    ("less expensive than", Cue.COMPARE, (Operator.LT, Grade(False, ("price", "cost", "fare", "fee")))),
    ("most/the most/most number of/greatest number of/largest number of/highest number of/maximum number of"
     "/top/most of/largest amount of/biggest number of", Cue.SUPERLATIVE, Grade(True)),
    ("least/fewest/the least/the fewest/fewest number of/smallest number of/lowest number of/least number of"
     "/minimum number of/bottom", Cue.SUPERLATIVE, Grade(False)),
    ("time", Cue.TIMES, None),
)  # fmt: skip
_WHERE = (
    ("where", "location place city country town hometown address state region birthplace venue nationality"),
    ("when", "date time year day month"),
)
_HOW = (
    ("old", "age"), ("tall", "height"), ("high", "height elevation"), ("heavy", "weight"), ("long", "length duration"),
    ("large", "size area population"), ("big", "size area population"), ("far", "distance"),
    ("expensive", "price cost"),
    ("fast", "speed"), ("deep", "depth"), ("wide", "width"),
)  # fmt: skip


@lru_cache(1)
def _patterns() -> dict[str, list[Pattern]]:
    found = [
        Pattern((word,), Cue.COMPARE, (operator, Grade(operator == Operator.GT)))
        for word, operator in (("more", Operator.GT), ("less", Operator.LT), ("fewer", Operator.LT))
    ]
    found += [Pattern(("how", word), Cue.ASK, Grade(True, tuple(nouns.split()))) for word, nouns in _HOW]
    found += [Pattern((word,), Cue.ASK, Grade(True, tuple(nouns.split()), any_type=True)) for word, nouns in _WHERE]
    found += [
        Pattern(tuple(words.split()), cue, payload)
        for phrases, cue, payload in _PHRASES
        for words in phrases.split("/")
    ]
    found += [Pattern((*p.words, "order"), p.cue, p.payload) for p in found if p.cue == Cue.DIRECTION]
    for comparatives, superlatives, more, attributes, inverse in _ADJECTIVES:
        grade = Grade(more, tuple(attributes.split()), inverse=tuple(inverse.split()))
        for word in superlatives.split():
            found.append(Pattern((word,), Cue.SUPERLATIVE, grade))
        for word in comparatives.split():
            operator = Operator.GT if more else Operator.LT
            found.append(Pattern((word,), Cue.COMPARE, (operator, grade)))
            known = any(p.words == (word, "than") for p in found)
            if not known:
                found.append(Pattern((word, "than"), Cue.COMPARE, (operator, grade)))
            opposite = Operator.LE if more else Operator.GE
            found.append(Pattern(("not", word, "than"), Cue.COMPARE, (opposite, grade)))
            found.append(Pattern(("no", word, "than"), Cue.COMPARE, (opposite, grade)))
            found.append(Pattern(("or", word), Cue.COMPARE, (Operator.GE if more else Operator.LE, grade)))
    by_first: dict[str, list[Pattern]] = {}
    for pattern in found:
        by_first.setdefault(pattern.words[0], []).append(pattern)
    for patterns in by_first.values():
        patterns.sort(key=lambda pattern: -len(pattern.words))
    return by_first


def cues_at(tokens: list[Token], start: int) -> list[Pattern]:
    """The cues that start at a token, one a length, the longest first."""
    found: dict[int, Pattern] = {}
    if tokens[start].quoted:
        return []
    noun = tokens[start].text.lower() in (*REQUESTED, "given", "gave")
    for first in {tokens[start].lemma, tokens[start].text.lower()}:
        for pattern in _patterns().get(first, ()):
            window = tokens[start : start + len(pattern.words)]
            if noun and pattern.cue == Cue.ASK:
                continue  # "which finds", "how many reports"
            if len(window) == len(pattern.words) and all(
                word in (token.lemma, token.text.lower()) for word, token in zip(pattern.words, window, strict=True)
            ):
                found.setdefault(len(pattern.words), pattern)
    return sorted(found.values(), key=lambda pattern: -len(pattern.words))
