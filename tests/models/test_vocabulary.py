"""One tokenizer a file and process, read again when the file changes; a file that is none is told."""

import shutil

import pytest

from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.encoder import MiniLMEncoder
from helios.models.vocabulary import Vocabulary


def test_encoders_of_one_base_share_it():
    first, second = MiniLMEncoder.load(), MiniLMEncoder.load(max_tokens=64)
    assert first._tokenizer is second._tokenizer is first.for_pairs()._tokenizer


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "tokenizer.json"
    shutil.copy(find_base_model().folder / "tokenizer.json", path)
    before = Vocabulary.of(tmp_path)
    assert before is Vocabulary.of(tmp_path)
    assert before.keep[before.numbers["river"]] and not before.keep[before.numbers["."]]
    path.write_text(path.read_text().replace('"river":', '"riverlike":'))
    assert "riverlike" in Vocabulary.of(tmp_path).numbers
    assert "river" in before.numbers


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_what_is_no_tokenizer_is_told(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json: no readable tokenizer \(.+\); restore the file"):
        Vocabulary.of(tmp_path)
