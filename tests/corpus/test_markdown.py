"""Markdown: pipe tables and the text around them."""

import pytest

from helios.corpus import read_corpus
from helios.errors import RecordError


def read_page(tmp_path, text):
    path = tmp_path / "my_page.md"
    path.write_text(text, encoding="utf-8")
    return list(read_corpus(path))


def test_tables_keep_every_cell(tmp_path):
    (table,) = read_page(
        tmp_path,
        "| River | |\n|:--|--:|\n| *Rhine* \\| Rhein | `1230` | extra |\n| [Po](x) |\nLoire | **1006**\n",
    )
    assert (table.table_id, table.title) == ("my_page.md#table-1", "my page")
    assert table.header == ("River", "column 2", "column 3")
    assert table.rows == (("Rhine | Rhein", "1230", "extra"), ("Po", "", ""), ("Loire", "1006", ""))


def test_text_headings_and_order(tmp_path):
    text = """---
title: "My rivers"
---
# Rivers

They *flow*
downhill, see [this](https://example.org) and ![a map](x.png).

a | b
--|--
1 | 2

## Europe

- one
- two

> quoted

```
code  here
```

<table><tr><th>q</th></tr><tr><td>r</td></tr></table>
"""
    table, intro, inner, europe = read_page(tmp_path, text)
    assert table.rows == (("1", "2"),)
    assert (table.title, table.section) == ("My rivers", "Rivers")
    assert intro.text == "Rivers: They flow downhill, see this and a map."
    assert (inner.section, inner.rows) == ("Rivers -- Europe", (("r",),))
    assert europe.text == "Rivers -- Europe: one two quoted code here"


def test_first_heading_is_the_title(tmp_path):
    (passage,) = read_page(tmp_path, "# Rivers\n\nThey flow.\n")
    assert (passage.title, passage.text) == ("Rivers", "They flow.")


def test_tables_in_quotes_and_lists(tmp_path):
    quoted, listed = read_page(tmp_path, "> | a | b |\n> |---|---|\n> | 1 | 2 |\n\n- | c |\n  |---|\n  | 3 |\n")
    assert quoted.rows == (("1", "2"),)
    assert (listed.header, listed.rows) == (("c",), (("3",),))


def test_ten_thousand_columns(tmp_path):
    lines = ["|" + "|".join(f"c{n}" for n in range(10_000)) + "|", "|" + "---|" * 10_000]
    (table,) = read_page(tmp_path, "\n".join([*lines, "|" + "|".join(map(str, range(10_000))) + "|"]))
    assert table.rows == (tuple(map(str, range(10_000))),)


def test_nul_bytes(tmp_path):
    path = tmp_path / "p.md"
    path.write_bytes(b"text\0text")
    with pytest.raises(RecordError, match="NUL bytes"):
        list(read_corpus(path))
