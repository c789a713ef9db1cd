"""Aggregations executed in DuckDB over restored tables: for every column and every filter, the order of the rows.

One query serves all hypotheses of a question. Tables arrive as Arrow data in memory; the connection reads no file,
and no text of a question or a table ever becomes part of a statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from helios.once import once

_ORDERS = """
SELECT cell.grp, cell.col, cell.row, cell.value,
       rank() OVER (PARTITION BY cell.grp, cell.col ORDER BY cell.value) AS from_small,
       rank() OVER (PARTITION BY cell.grp, cell.col ORDER BY cell.value DESC) AS from_large,
       count(*) OVER (PARTITION BY cell.grp, cell.col) AS size,
       count(*) OVER (PARTITION BY cell.grp, cell.col, cell.value) AS ties
FROM (SELECT g.grp, c.col, c.row, c.value FROM cells c JOIN groups g ON c.tab = g.tab AND c.row = g.row) cell
ORDER BY cell.grp, cell.col, cell.row
"""


@dataclass(frozen=True, slots=True)
class Orders:
    """For every (group, column, row) with a value: its rank from either end, the group's size and the ties."""

    group: NDArray[np.int64]
    column: NDArray[np.int64]
    row: NDArray[np.int64]
    value: NDArray[np.float64]
    from_small: NDArray[np.int64]
    from_large: NDArray[np.int64]
    size: NDArray[np.int64]
    ties: NDArray[np.int64]

    def of(self, group: int, column: int) -> slice:
        """Where the rows of one group and column are."""
        key = self.group * _SPREAD + self.column
        first, last = np.searchsorted(key, [group * _SPREAD + column, group * _SPREAD + column + 1])
        return slice(int(first), int(last))


_SPREAD = 100_000


class Executor:
    """An in-memory DuckDB without access to files or settings; for one thread at a time (each takes a cursor)."""

    @once
    def _connection(self) -> Any:
        import duckdb

        return duckdb.connect(
            ":memory:",
            config={"threads": 1, "enable_external_access": False, "lock_configuration": True},
        )

    def orders(
        self,
        columns: Sequence[tuple[int, NDArray[np.float64]]],
        groups: Sequence[tuple[int, NDArray[np.bool_]]],
    ) -> Orders:
        """Ranks of the rows: `columns` are (table, values (rows)), `groups` are (table, which rows (rows)).

        Numbers of columns and groups are their places in the sequences; NaN is no value.
        """
        cursor = self._connection.cursor()
        try:
            cursor.register("cells", _cells(columns))
            cursor.register("groups", _groups(groups))
            found = cursor.execute(_ORDERS).fetchnumpy()
        finally:
            cursor.close()
        numbers = {name: np.asarray(found[name], np.int64) for name in found if name != "value"}
        return Orders(
            group=numbers["grp"],
            column=numbers["col"],
            row=numbers["row"],
            value=np.asarray(found["value"], np.float64),
            from_small=numbers["from_small"],
            from_large=numbers["from_large"],
            size=numbers["size"],
            ties=numbers["ties"],
        )


def _cells(columns: Sequence[tuple[int, NDArray[np.float64]]]) -> pa.Table:
    kept = [np.flatnonzero(np.isfinite(values)) for _, values in columns]
    return pa.table(
        {
            "tab": _repeated([table for table, _ in columns], kept),
            "col": _repeated(range(len(columns)), kept),
            "row": _joined(kept),
            "value": _joined([values[rows] for (_, values), rows in zip(columns, kept, strict=True)], np.float64),
        }
    )


def _groups(groups: Sequence[tuple[int, NDArray[np.bool_]]]) -> pa.Table:
    kept = [np.flatnonzero(mask) for _, mask in groups]
    return pa.table(
        {
            "grp": _repeated(range(len(groups)), kept),
            "tab": _repeated([table for table, _ in groups], kept),
            "row": _joined(kept),
        }
    )


def _repeated(numbers: Sequence[int] | range, kept: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.repeat(np.asarray(numbers, np.int64), [len(rows) for rows in kept])


def _joined(arrays: Sequence[NDArray[Any]], kind: type = np.int64) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *arrays]).astype(kind)
