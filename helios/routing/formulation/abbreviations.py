"""Names of old schemas spelt out by the words of a question: LD_HDR holds loads, DLV_DT is a delivery date.

Only of schemas that shorten many of their names: elsewhere a name that begins like another word is another word.
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.schema import ColumnView, SchemaView, TableView
from helios.routing.formulation.words import FUNCTION_WORDS, Token, in_order, shortens


def spelt_out(schema: SchemaView, tokens: Sequence[Token]) -> SchemaView:
    """The schema with words of the question in place of what its names shorten them to."""
    if not schema.terse:
        return schema
    names = {word for table in schema.tables.values() for word in table.words}
    names |= {word for column in schema.columns() for word in column.words}
    said = [token.lemma for token in tokens]
    asked = [word for word in dict.fromkeys(said) if word.isalpha() and word not in names | FUNCTION_WORDS]
    longer = {
        name: words[0] for name in names - set(said) if (words := [word for word in asked if shortens(name, word)])
    }
    for column in schema.columns():
        longer |= _beside(column.words, said, longer)
    if not longer:
        return schema

    def whole(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(longer.get(word, word) for word in words)

    def of_columns(columns: tuple[ColumnView, ...]) -> tuple[ColumnView, ...]:
        return tuple(replace(column, words=whole(column.words)) for column in columns)

    def of_table(table: TableView) -> TableView:
        return replace(
            table, words=whole(table.words), columns=of_columns(table.columns), keys=of_columns(table.keys),
            roles=tuple(map(whole, table.roles)), computed=of_columns(table.computed),
        )  # fmt: skip

    return replace(schema, tables={name: of_table(table) for name, table in schema.tables.items()})


def _beside(words: tuple[str, ...], said: Sequence[str], longer: dict[str, str]) -> dict[str, str]:
    """What one word of a name stands for where the question says the other beside it: the limit of CR_LMT."""
    found = {}
    for first, second in zip(words, words[1:], strict=False):
        for left, right in zip(said, said[1:], strict=False):
            if first not in longer and longer.get(second, second) == right and _within(first, left):
                found[first] = left
            if second not in longer and longer.get(first, first) == left and _within(second, right):
                found[second] = right
    return found


def _within(name: str, word: str) -> bool:
    """Whether the letters of a short name come in a word in their order, from its first."""
    return 2 <= len(name) < len(word) - 1 and name[0] == word[0] and in_order(name, word)
