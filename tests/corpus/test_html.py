"""HTML pages: spans, infoboxes, headings, passages, encodings."""

import pytest

from helios.corpus import read_corpus
from helios.corpus.page import split_passages
from helios.errors import RecordError
from helios.types import Passage, Table, TableKind


def read_page(tmp_path, body, *, head="<title>Rivers</title>"):
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>", encoding="utf-8")
    return list(read_corpus(path))


def test_spans_are_expanded(tmp_path):
    (table,) = read_page(
        tmp_path,
        """<table><tr><th rowspan=2>River<th colspan=2>Size</tr><tr><th>km<th>m3/s</tr>
        <tr><td rowspan=2>Rhine<td>1230<td>2900</tr><tr><td colspan=2>both</tr>
        <tr><td>Po<td>652</tr></table>""",
    )
    assert table.header == ("River", "Size km", "Size m3/s")
    assert table.rows == (("Rhine", "1230", "2900"), ("Rhine", "both", "both"), ("Po", "652", ""))


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ('<td colspan="0">a<td>b', ("a", "b")),
        ('<td colspan="x">a<td>b', ("a", "b")),
        ('<td colspan="-3">a<td>b', ("a", "b")),
        ('<td rowspan="0">a<td>b', ("a", "b")),
        ('<td rowspan="99999999999">a<td>b', ("a", "b")),
        ("<td>a<td>b<td>c", ("a", "b", "c")),
    ],
)
def test_odd_spans(tmp_path, row, cells):
    (table,) = read_page(tmp_path, f"<table><tr><th>x<th>y</tr><tr>{row}</tr></table>")
    assert table.rows == (cells,)


def test_huge_column_span_is_limited_and_overlap_ends(tmp_path):
    (table,) = read_page(
        tmp_path,
        "<table><tr><th>a<th>b<th rowspan=3>c</tr><tr><td colspan=99999>x</tr><tr><td>y</tr></table>",
    )
    assert len(table.header) == 1000
    assert table.rows[1][:3] == ("y", "", "c")


def test_ten_thousand_columns(tmp_path):
    header = "".join(f"<th>c{number}" for number in range(10_000))
    row = "".join(f"<td>{number}" for number in range(10_000))
    (table,) = read_page(tmp_path, f"<table><tr>{header}</tr><tr>{row}</tr></table>")
    assert table.rows == (tuple(map(str, range(10_000))),)


def test_infobox(tmp_path):
    (infobox,) = read_page(
        tmp_path,
        """<table class="infobox vcard"><tr><th colspan=2>Rhine</th></tr><tr><td colspan=2>a picture</td></tr>
        <tr><th>Length</th><td>1,230&nbsp;km<sup class="reference">[1]</sup></td></tr>
        <tr><th colspan=2>Basin</th></tr><tr><th>Countries</th><td>CH<br>DE</td><td>NL</td></tr></table>""",
    )
    assert infobox.kind is TableKind.INFOBOX
    assert infobox.header == ("attribute", "value")
    assert infobox.rows == (
        ("name", "Rhine"),
        ("", "a picture"),
        ("Length", "1,230 km"),
        ("Basin / Countries", "CH DE ; NL"),
    )


def test_page_order_headings_and_captions(tmp_path):
    intro, table, after, last = read_page(
        tmp_path,
        """<nav>menu</nav><h1>Rivers</h1>
        <p>Rivers <b>flow</b> down<i>hill</i><sup class=reference>[2]</sup>.</p>
        <p>Second.</p><script>var x</script><p style="display: none">hidden</p><!-- note -->
        <h2>Europe <span class="mw-editsection">edit</span></h2>
        <h3>Long ones</h3>
        <table><caption>By length</caption><tr><td>River<td>km</tr><tr><td>Rhine<td>1230</tr></table>
        <ul><li>One<li>Two</ul>loose text<h2>Asia</h2><div>Last</div>""",
        head='<title> Rivers </title><link rel="canonical" href="https://example.org/r">',
    )
    url = "https://example.org/r"
    assert intro == Passage("page.html#passage-1", "Rivers", "Rivers flow downhill. Second.", url, "page.html")
    assert table == Table(
        "page.html#table-1",
        "Rivers",
        ("River", "km"),
        (("Rhine", "1230"),),
        section="Europe -- Long ones -- By length",
        url=url,
        source="page.html",
    )
    assert after.text == "Europe -- Long ones: One Two loose text"
    assert (last.passage_id, last.text) == ("page.html#passage-3", "Asia: Last")


def test_nested_tables_come_on_their_own(tmp_path):
    outer, inner = read_page(
        tmp_path,
        "<table><tr><th>a<th>b</tr><tr><td>1<td>x<table><tr><th>c<th>d</tr><tr><td>2<td>3</tr></table>y</tr></table>",
    )
    assert outer.rows == (("1", "x y"),)
    assert inner.rows == (("2", "3"),)
    (only,) = read_page(tmp_path, "<table><tr><td><table><tr><th>c</tr><tr><td>1</tr></table></tr></table>")
    assert only.rows == (("1",),)


def test_title_row_over_the_header_and_missing_header(tmp_path):
    titled, plain = read_page(
        tmp_path,
        "<table><tr><th colspan=2>Results</tr><tr><th>a<th>b</tr><tr><td>1<td>2</tr></table>"
        "<table><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>",
        head="",
    )
    assert (titled.title, titled.section, titled.header) == ("page", "Results", ("a", "b"))
    assert plain.header == ("column 1", "column 2")
    assert len(plain.rows) == 2


def test_long_text_is_cut_between_sentences(tmp_path):
    sentence = "This sentence has exactly eight words in it."
    passages = read_page(tmp_path, f"<p>{' '.join([sentence] * 30)}</p>")
    assert len(passages) == 3
    assert all(passage.text.endswith("it.") for passage in passages)
    assert all(len(passage.text.split()) <= 100 for passage in passages)
    assert [len(piece.split()) for piece in split_passages(["word " * 250])] == [100, 100, 50]


@pytest.mark.parametrize(
    ("encoding", "meta"),
    [
        ("latin-1", '<meta charset="iso-8859-1">'),
        ("latin-1", ""),
        ("utf-16", ""),
        ("utf-8", "<meta charset=bogus>"),
    ],
)
def test_encodings(tmp_path, encoding, meta):
    text = f"<html><head>{meta}<title>Städte</title></head><body><p>Málaga und Köln</p></body></html>"
    path = tmp_path / "page.html"
    path.write_bytes(text.encode(encoding))
    (passage,) = read_corpus(path)
    assert (passage.title, passage.text) == ("Städte", "Málaga und Köln")


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"<p>a\0b</p>", "NUL bytes"), (b"<!-- -->", "empty page"), ("<p>é".encode() + b"\xff", "not UTF-8")],
)
def test_unusable_pages(tmp_path, data, reason):
    path = tmp_path / "page.html"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=reason):
        list(read_corpus(path))
    assert list(read_corpus(path, on_error="skip")) == []


def test_broken_markup_and_deep_nesting(tmp_path):
    (passage,) = read_page(tmp_path, "<div>" * 1500 + "deep &amp; <b>bold <p>")
    assert passage.text == "deep & bold"
    with pytest.raises(RecordError, match="Excessive depth"):
        read_page(tmp_path, "<div>" * 5000 + "too deep")
    records = read_page(tmp_path, "<table><tr><td>a<td>b<tr><td>1<td>2 <p>unclosed")
    assert records[0].rows[-1][0] == "1"


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Rhine - Wikipedia", "", "Rhine"),
        ("Rhine – Wikipedia, the free encyclopedia", "", "Rhine"),
        ("Rhin — Wikipédia", "", "Rhin"),
        ("Prices | Our Shop", "", "Prices"),
        ("Prices - Our Shop", "Prices", "Prices"),
        ("Alsace - Lorraine", "History", "Alsace - Lorraine"),
        ("Opening hours – Museum", "", "Opening hours"),
    ],
)
def test_the_name_of_the_site_is_no_part_of_the_title(tmp_path, title, heading, expected):
    head = f'<title>{title}</title><meta property="og:site_name" content="Museum">'
    (passage,) = read_page(tmp_path, f"<h1>{heading}</h1><p>Text.", head=head)
    assert passage.title == expected


def test_footnote_marks_in_cells_and_the_caption_of_an_infobox(tmp_path):
    infobox, table = read_page(
        tmp_path,
        "<table class=infobox><caption>Rhine [a]</caption><tr><th>Length<td>1,230 km[1][note 2]</table><h2>x</h2>"
        "<table><tr><th>River[b]<th>Source<tr><td>Rhine [12]<td>[3]<tr><td>Po<td>[text]</table>",
    )
    assert infobox.rows == (("name", "Rhine"), ("Length", "1,230 km"))
    assert table.header == ("River", "Source")
    assert table.rows == (("Rhine", "[3]"), ("Po", "[text]"))


def test_marks_that_lead_to_notes_are_no_text(tmp_path):
    """Of a page that has marks as links; a power, and a link with a text, stay."""
    page = (
        '<h2>Course<a href="#n3">[3]</a></h2><p>It is long<sup><a href="#n1">1</a></sup> and '
        'wide<a href="#n2">[2]</a>, 10 m<sup>2</sup> of <a href="#rhine">a river</a>.'
    )
    (passage,) = read_page(tmp_path, page)
    assert passage.text == "Course: It is long and wide, 10 m2 of a river."


def test_a_table_that_arranges_the_page_is_none(tmp_path):
    table, passage = read_page(
        tmp_path,
        "<table><tr><td><h2>Menu</h2><p>Welcome to us.</td><td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>",
    )
    assert (table.section, table.rows) == ("Menu", (("1", "2"),))
    assert passage.text == "Menu: Welcome to us."
