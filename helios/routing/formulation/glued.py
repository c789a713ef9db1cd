"""Names of columns that are several words without a border: petid, aid, and in old schemas CUSNM, OUTDT and LABHRS."""

from collections.abc import Collection, Sequence

from helios.routing.formulation.words import ABBREVIATIONS, VOWELS, consonants_of, lemma, name_words

GLUED = ("id", "name", "type", "code", "date", "number", "no", "key", "title", "year", "age", "status")
"""What stands behind a table's word in names without a border, as in `petid`."""
SHORT = ("id", "no", "code", "name")
"""What stands behind a table's first letters in names of keys, as in `aid` and `flno`."""
TAILS = {
    "nm": "name", "dt": "date", "cd": "code", "amt": "amount", "qty": "quantity", "typ": "type", "dsc": "description",
    "flg": "flag", "fl": "flag", "prc": "price", "pr": "price", "cst": "cost", "lvl": "level", "hrs": "hours",
    "mdl": "model", "mk": "make", "twn": "town", "eml": "email", "adr": "address", "sz": "size", "sts": "status",
    "pct": "percent", "nbr": "number", "yr": "year", "mbr": "member", "lmt": "limit", "catg": "category",
    "emp": "employee", "ctry": "country", "phn": "phone",
}  # fmt: skip
"""What old schemas end names with, as no English word ends."""
OWN_TAILS = {
    "no": "number", "st": "status", "stat": "status", "tel": "phone", "cat": "category", "val": "value", "wt": "weight",
    "ht": "height", "rt": "rate", "cty": "city", "cnt": "count", "tot": "total", "bal": "balance",
    "desc": "description",
}  # fmt: skip
"""The same of what English words do end with: only behind letters of the table's own name."""
NUMERIC_TAILS = {"rt": "rate", "dy": "days", "hr": "hours"}
"""The same behind anything, where a column holds numbers."""
HEADS = {"qty": "quantity", "min": "minimum", "max": "maximum", "avg": "average", "tot": "total", "cust": "customer"}
"""What they begin names with."""
ENDS = {"oh": "on hand", "ord": "order", "usd": "used", "pd": "paid"}
"""What stands behind these."""
LEAST = 2
"""Letters of a part, at least."""


def unglued(word: str, own: tuple[str, ...], said: Collection[str], *, key: bool) -> tuple[str, ...]:
    """A name of two words without a border: the table's own word or its first letters, or another table's word.

    `own` are the words of the table's name, `said` those of all tables'. Whatever stands in front of a key's `id` is a
    word.
    """
    for last in GLUED:
        first = word.removesuffix(last)
        if first == word:
            continue
        if (key or last == "name") and 0 < len(first) < 3 and last in SHORT:
            meant = [w for w in own if w.startswith(first)]
            meant = meant or [w for w in sorted(said) if key and w.startswith(first)]
            if len(meant) == 1:
                return meant[0], *name_words(last)
        if len(first) < 3:
            continue
        called = next((w for w in own if w.startswith(first) or lemma(w) == lemma(first)), None)
        if called is not None:
            return called, *name_words(last)
        if lemma(first) in said:
            return lemma(first), *name_words(last)
        if key and last == "id":
            return *name_words(first), last
    return (word,)


def unglued_short(
    name: str, own: tuple[str, ...], said: Collection[str], *, numeric: bool, key: bool
) -> tuple[str, ...] | None:
    """The words of a short name of an old schema: CUSNM of customers is their name, OUTDT an out date, UPRC a price.

    None where the name does not look as if it were several; what its first letters stand for a question may tell
    (`abbreviations.spelt_out`).
    """
    word = name.lower()
    if not word.isalpha() or word in ABBREVIATIONS or word in said:
        return None
    if key and word.endswith("no") and len(word) > LEAST + 2 and not _called(word[:-2], own):
        return _head(word[:-2])[0], "number"
    parts = [(word[:-size], word[-size:]) for size in (4, 3, 2) if len(word) > size]
    for head, tail in parts:
        called = _called(head, own) or next(filter(None, (_called(head, (w,)) for w in sorted(said))), None)
        if called and (meant := TAILS.get(tail) or OWN_TAILS.get(tail)):
            return called, *meant.split()
    for head, tail in parts:
        whole = head[-1] in VOWELS  # port, ready and alert are no rates and no days
        meant = TAILS.get(tail) or (NUMERIC_TAILS.get(tail) if numeric and not whole else None)
        if meant and (len(head) >= LEAST or head == "u"):
            return *(("unit",) if head == "u" else _head(head)), *meant.split()
    if word in ("ucost", "uprice"):
        return "unit", word[1:]
    for size in (4, 3):
        if (first := HEADS.get(word[:size])) and (rest := word[size:]) in ENDS:
            return first, *ENDS[rest].split()
    return None


def of_two(name: str, said: Collection[str]) -> tuple[str, ...] | None:
    """The words of a table's short name that is those of two others: JOBPRT holds the parts of jobs."""
    word = name.lower()
    others = [other for other in sorted(said) if other != word]
    for place in range(len(word) - LEAST - 1, LEAST, -1):
        halves = word[:place], word[place:]
        first, last = (_called(half, others) for half in halves)
        if first and last and first != last and any(map(VOWELS.isdisjoint, halves)):
            return first, last
    return None


def _called(head: str, own: Sequence[str]) -> str | None:
    """The word of a table's name that letters stand for: CUS and CST of customers, PRT of parts, JOB of RJOB."""
    if len(head) < LEAST:
        return None
    for word in own:
        if len(head) > LEAST and (word.startswith(head) or consonants_of(word).startswith(head)):
            return word
        if word == head or (len(head) > LEAST and word.endswith(head)):
            return head
    return None


def _head(head: str) -> tuple[str, ...]:
    """The words of what stands in front: LSVC is the last service, PD what is paid."""
    if head in ENDS and head != "ord":
        return tuple(ENDS[head].split())
    if head[0] == "l" and head[1:] in ABBREVIATIONS and head not in ABBREVIATIONS:
        return "last", *ABBREVIATIONS[head[1:]].split()
    return tuple(ABBREVIATIONS.get(head, head).split()) or (head,)
