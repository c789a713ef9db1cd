"""Encodings that a page may declare: those of the web count, all others are as good as none."""

import encodings.aliases

import pytest

from helios.corpus import read_corpus
from helios.corpus.encoding import decode

ALL = sorted({*encodings.aliases.aliases, "undefined", "idna", "palmos", "oem", "raw-unicode-escape", "..", "a" * 5000})
ODD = ["undefined", "punycode", "utf-7", "idna", "unicode_escape", "hex", "rot13", "zlib"]
WEB = {
    "windows-1252": "naïve", "iso-8859-1": "naïve", "iso-8859-15": "naïve €", "macintosh": "naïve", "utf-8": "naïve",
    "koi8-r": "река", "windows-1251": "река", "ibm866": "река", "gb2312": "河流", "gbk": "河流", "gb18030": "河流",
    "big5": "河流", "Shift_JIS": "川", "euc-jp": "川", "iso-2022-jp": "川", "euc-kr": "강", "tis-620": "ไทย",
    "us-ascii": "river",
}  # fmt: skip


@pytest.mark.parametrize("charset", ODD)
def test_a_page_with_an_odd_charset_is_read_as_utf8(tmp_path, charset):
    page = tmp_path / "page.html"
    page.write_bytes(f"<meta charset={charset}><p>+ADw-b+AD4- naïve \\x3cb\\x3e".encode())
    (passage,) = read_corpus(page)
    assert passage.text == "+ADw-b+AD4- naïve \\x3cb\\x3e"


@pytest.mark.parametrize(("charset", "text"), WEB.items())
def test_encodings_of_the_web(charset, text):
    assert decode(text.encode(charset), declared=charset) == text


@pytest.mark.parametrize("data", [b"abc \xff\xfe\x80" * 50, b"xn--" + b"a" * 20_000, "naïve".encode()])
def test_no_declaration_raises(data):
    for charset in ALL:
        assert decode(data, declared=charset)
