"""What hyperlinks teach the linker: which mention names which title, and how often cells are linked."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from helios.models.linker.aliases import NIL, AliasTable
from helios.models.linker.recognition import RecognisedCell, Recogniser
from helios.models.linker.text import normalise, split_disambiguator
from helios.types import Table

MAX_ALIAS_TOKENS = 8
"""Longer mentions are not learned."""
HEADER_CELLS = 20
"""A table counts at most this many cells of one header."""


@dataclass(frozen=True, slots=True)
class TableLessons:
    """What one table teaches."""

    aliases: frozenset[tuple[str, str]]
    headers: dict[str, tuple[int, int]]
    header_types: frozenset[tuple[str, str]]


def lessons(
    table: Table,
    recogniser: Recogniser,
    title_of: Callable[[str], str | None],
    types_of: Callable[[str], tuple[str, ...]],
) -> TableLessons:
    """Aliases, header link rates and header types of one table's hyperlinks."""
    links: dict[tuple[int, int], list[str]] = {}
    for link in table.hyperlinks:
        links.setdefault((link.row, link.column), []).append(link.passage_id)
    texts = [text for row in table.rows for text in row]
    recognised = iter(recogniser.recognise(texts))
    aliases: set[tuple[str, str]] = set()
    nils: set[str] = set()
    header_types: set[tuple[str, str]] = set()
    counts: dict[str, tuple[int, int]] = {}
    headers = [normalise(name) for name in table.header]
    for row, values in enumerate(table.rows):
        for column, header in enumerate(headers[: len(values)]):
            cell = next(recognised)
            linked = links.get((row, column), [])
            titles = [title for passage_id in linked if (title := title_of(passage_id)) is not None]
            if cell.words:
                cells, hits = counts.get(header, (0, 0))
                counts[header] = (cells + 1, hits + bool(titles))
            if not titles and 0 < len(cell.words) <= MAX_ALIAS_TOKENS:
                nils.add(" ".join(cell.words))
            aliases.update((mention, normalise(title)) for mention, title in align(cell, titles))
            header_types.update((header, kind) for passage_id in linked for kind in types_of(passage_id))
    linked_mentions = {mention for mention, _ in aliases}
    aliases.update((mention, NIL) for mention in nils - linked_mentions)
    return TableLessons(frozenset(aliases), _capped(counts), frozenset(header_types))


def align(cell: RecognisedCell, titles: list[str]) -> list[tuple[str, str]]:
    """Which mention of a cell names which linked title: titles found inside, then what is left over."""
    text = f" {' '.join(cell.words)} "
    pairs: list[tuple[str, str]] = []
    rest: list[str] = []
    for title in dict.fromkeys(titles):
        forms = (normalise(title), normalise(split_disambiguator(title)[0]))
        inside = next((form for form in forms if form and f" {form} " in text), None)
        if inside is None:
            rest.append(title)
        else:
            pairs.append((inside, title))
            text = text.replace(f" {inside} ", " | ", 1)
    if len(rest) == 1 and not pairs:
        pairs.extend((mention, rest[0]) for mention in _likely_mentions(cell))
    elif len(rest) == 1 and len(left := _left_over(text)) == 1:
        pairs.append((left[0], rest[0]))
    elif rest:
        free = [mention for mention in _parts(cell) if f" {mention} " in text]
        if len(free) == len(rest):
            pairs.extend(zip(free, rest, strict=True))
    return [(mention, title) for mention, title in pairs if mention.count(" ") < MAX_ALIAS_TOKENS]


def _left_over(text: str) -> list[str]:
    """What remains of a cell between the titles that were cut out of it."""
    return [piece.strip() for piece in text.split("|") if piece.strip()]


def _parts(cell: RecognisedCell) -> list[str]:
    """The recogniser's mentions without the whole cell, unless the whole cell is all there is."""
    spans = cell.mentions[1:] or cell.mentions
    return [" ".join(cell.words[first:last]) for first, last in spans]


def _likely_mentions(cell: RecognisedCell) -> list[str]:
    """Of a cell with one link: the whole cell, and its first part (what is outside brackets)."""
    return list(dict.fromkeys([" ".join(cell.words), _parts(cell)[0]])) if cell.mentions else []


def _capped(counts: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    capped = {}
    for header, (cells, hits) in counts.items():
        scale = min(1.0, HEADER_CELLS / cells)
        capped[header] = (round(cells * scale), round(hits * scale))
    return capped


def merge_lessons(taught: Iterable[TableLessons]) -> AliasTable:
    """Sum the lessons of many tables."""
    aliases: Counter[tuple[str, str]] = Counter()
    header_types: Counter[tuple[str, str]] = Counter()
    headers: dict[str, tuple[int, int]] = {}
    for one in taught:
        aliases.update(one.aliases)
        header_types.update(one.header_types)
        for header, (cells, hits) in one.headers.items():
            known = headers.get(header, (0, 0))
            headers[header] = (known[0] + cells, known[1] + hits)
    return AliasTable(dict(aliases), headers, dict(header_types))
