from functools import partial
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from helios.corpus import read_corpus
from helios.corpus.sample import sample_path
from helios.errors import ModelError
from helios.models.linker.recognition import MAX_TOKENS, RecognisedCell, Recogniser, read_cell
from helios.models.linker.spacy_pipeline import cells_of
from helios.models.linker.text import TOKEN
from helios.types import Table


def mentions(text: str, recogniser: Recogniser | None = None) -> list[str]:
    cell = recognise(text, recogniser)
    return [text[cell.starts[first] : cell.ends[last - 1]] for first, last in cell.mentions]


def recognise(text: str, recogniser: Recogniser | None = None) -> RecognisedCell:
    return (recogniser or Recogniser()).recognise([text])[0]


def test_whole_cell_comes_first_then_its_parts() -> None:
    assert mentions("Eminem featuring Rihanna") == ["Eminem featuring Rihanna", "Eminem", "Rihanna"]
    assert mentions("Kelowna / Okanagan Valley") == [
        "Kelowna / Okanagan Valley",
        "Kelowna",
        "Okanagan Valley",
    ]


def test_brackets_are_parts() -> None:
    assert mentions("Ave Pajo ( Tallinna Kalev )") == [
        "Ave Pajo ( Tallinna Kalev",
        "Ave Pajo",
        "Tallinna Kalev",
    ]


@pytest.mark.parametrize("text", ["", " ", "—", "( )", "...", "\n"])
def test_cells_without_words_have_no_mentions(text: str) -> None:
    assert mentions(text) == []


@pytest.mark.parametrize("text", ["  two  blanks ", "a\tb\nc", "x" * 500, "日本 (東京)", "a,b;;c"])
def test_spans_point_into_the_original_cell(text: str) -> None:
    cell = recognise(text)
    for word, start, end in zip(cell.words, cell.starts, cell.ends, strict=True):
        assert len(word) == end - start
        assert text[start:end].lower()[0] == word[0].lower()


def test_long_cells_are_cut() -> None:
    assert len(recognise("word " * 1000).words) == MAX_TOKENS


def test_capitals_tell_abbreviations_from_names() -> None:
    assert recognise("DF Davis runs 4").capitals == (2, 1, 0, 1)


def cut(vocab: Vocab, text: str) -> Doc:
    """A cell as a spaCy document: runs of letters and digits, single other characters, and blanks that join them."""
    words: list[str] = []
    spaces: list[bool] = []
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        end = match.end() if match else position + 1
        words.append(text[position:end])
        blank = text[end : end + 1] == " "
        spaces.append(blank)
        position = end + blank
    return Doc(vocab, words=words, spaces=spaces)


def blank_pipeline() -> Language:
    """Cells as spaCy reads them, with nothing trained."""
    nlp = spacy.blank("en")
    nlp.tokenizer = partial(cut, nlp.vocab)
    nlp.add_pipe("helios_cell_parts")
    return nlp


PIPELINE = blank_pipeline()
PIECES = st.sampled_from(
    ("and", "AND", "V", "word", "Ünï", "東京", "x1", " ", "  ", "\n", ",", "(", "&", "—", "_", "'")
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=150).map("".join)))
def test_cells_are_read_as_the_blank_pipeline_reads_them(text: str) -> None:
    assert read_cell(text) == next(cells_of(PIPELINE, [text]))


def test_cells_of_the_sample_are_read_as_the_blank_pipeline_reads_them() -> None:
    tables = (record for record in read_corpus(sample_path()) if isinstance(record, Table))
    texts = list({cell for table in tables for row in table.rows for cell in row})
    assert list(map(read_cell, texts)) == list(cells_of(PIPELINE, texts))


def test_entities_of_a_trained_pipeline_become_mentions(tmp_path: Path) -> None:
    trained = spacy.blank("en")
    trained.add_pipe("entity_ruler").add_patterns([{"label": "PLACE", "pattern": "Port Gibson"}])
    trained.to_disk(tmp_path / "pipeline")
    recogniser = Recogniser(str(tmp_path / "pipeline"))
    assert "Port Gibson" in mentions("a site near Port Gibson in spring", recogniser)


def test_missing_pipeline_is_named() -> None:
    with pytest.raises(ModelError, match="no_such_pipeline"):
        Recogniser("no_such_pipeline")
