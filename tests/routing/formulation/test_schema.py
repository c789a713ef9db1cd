"""What a schema's columns are seen as."""

import pytest

from helios.routing.formulation.schema import SchemaView
from helios.sources.descriptor import Column, RelationalSchema, TableSchema


def column(name, type_, *samples):
    table = TableSchema("lamp", (Column("id", "INTEGER", primary_key=True), Column(name, type_, samples=samples)))
    return SchemaView.of(RelationalSchema("sqlite", (table,))).tables["lamp"].columns[1]


@pytest.mark.parametrize(
    ("name", "type_", "samples", "flag"),
    [
        ("repaired", "TEXT", ("yes", "no"), ("yes", "no")), ("repaired", "TEXT", ("Y",), ("Y", "N")),
        ("repaired", "BOOLEAN", ("true", "false"), (True, False)), ("repaired", "INTEGER", ("1", "0"), (1, 0)),
        ("repaired", "TEXT", ("0", "1"), ("1", "0")), ("bulbs", "INTEGER", ("1",), None),
        ("is_lit", "INTEGER", ("1",), (1, 0)), ("sex", "TEXT", ("F", "M"), None), ("colour", "TEXT", (), None),
    ],
)  # fmt: skip
def test_columns_of_yes_and_no(name, type_, samples, flag):
    assert column(name, type_, *samples).flag == flag


def test_columns_of_dates_are_called_dates():
    seen = column("sold_on", "TEXT", "2020-01-31", "2021-02-28")
    assert seen.temporal
    assert seen.words[-1] == "date"
    assert column("length_nm", "REAL", "3.5").words == ("length",)
    assert column("lamp_nm", "TEXT", "Low").words[-1] == "name"
