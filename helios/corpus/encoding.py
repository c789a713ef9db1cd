"""Bytes of unknown encoding to text."""

import codecs
import re
from collections.abc import Iterable

from charset_normalizer import CharsetMatch, from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN = "cp1252"
_CANDIDATES = [
    *(_WESTERN, "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
_DECLARED = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman"),
        *(f"iso8859-{part}" for part in range(1, 17)),
        *(f"cp125{part}" for part in range(9)),
        *("mac-cyrillic", "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950", "shift_jis", "cp932"),
        *("euc_jp", "iso2022_jp", "euc_kr", "cp949", "tis-620"),
    ]
)
"""What a page may declare, by Python's names: the encodings of the web. Others hide text, or
take time that grows with the square of the page."""
_SAMPLE_BYTES = 1 << 18
_SPARSE = 0.01
_BROKEN = re.compile("[\udc80-\udcff]")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Text of a file: byte-order mark, then the declared encoding, then UTF-8, then a guess from the bytes.

    A file that is UTF-8 but for some bytes keeps those as lone surrogates (see `is_broken`), so that the
    records that hold them can be rejected alone.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if declared is not None:
        try:
            name = codecs.lookup(declared).name
            if name in _DECLARED:
                return data.decode(name)
        except (LookupError, UnicodeError):
            pass
    wide = _utf16_without_mark(data)
    if wide is not None:
        return wide
    text = data.decode("utf-8", "surrogateescape")
    broken = len(_BROKEN.findall(text))
    if not broken or _other_characters(text) - broken >= broken:
        return text
    return data.decode(_guess(data[:_SAMPLE_BYTES]), "replace")


def encoding_of(chunks: Iterable[bytes]) -> tuple[str, str]:
    """(encoding, what to do with other bytes) for a file that is read piece by piece, as `decode` would have it."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    sample, broken, other = b"", 0, 0
    for number, chunk in enumerate(chunks):
        if not number:
            known = next((name for mark, name in _BOMS if chunk.startswith(mark)), None)
            if known is None and _utf16_without_mark(chunk[:2000]) is not None:
                known = "utf-16-le" if chunk[1:2] == b"\0" else "utf-16-be"
            if known is not None:
                return known, "replace"
        sample += chunk[: _SAMPLE_BYTES - len(sample)]
        text = decoder.decode(chunk)
        if not text.isascii():
            broken += len(_BROKEN.findall(text))
            other += _other_characters(text)
    if not broken or other - broken >= broken:
        return "utf-8", "surrogateescape"
    return _guess(sample), "replace"


def is_broken(text: str) -> bool:
    """Whether text holds bytes that could not be decoded, or NUL characters."""
    return "\0" in text or _BROKEN.search(text) is not None


def readable(text: str) -> str:
    """Text without what no store takes: NULs and halves of surrogate pairs become the mark for lost characters."""
    return _UNSTORABLE.sub("\ufffd", text)


def broken_reason(text: str) -> str:
    """What is wrong with text that `is_broken`, for an error message."""
    if "\0" in text:
        return "NUL bytes; the file is damaged or not text"
    found = _BROKEN.search(text)
    byte = f" (byte {ord(found.group()) - 0xDC00:#04x})" if found else ""
    return f"not UTF-8{byte}"


def _guess(sample: bytes) -> str:
    """The likeliest encoding; Western European where it is as likely as any other."""
    guesses = list(from_bytes(sample, cp_isolation=_CANDIDATES, preemptive_behaviour=False))
    if not guesses:
        return _WESTERN
    if sum(byte > 0x7F for byte in sample) < _SPARSE * len(sample):
        return _WESTERN  # a few signs such as £ or é say nothing of the language
    likely = [guess.encoding for guess in guesses if _rank(guess) == _rank(guesses[0])]
    return _WESTERN if _WESTERN in likely else guesses[0].encoding


def _rank(guess: CharsetMatch) -> tuple[float, float]:
    return guess.chaos, -guess.coherence


def _utf16_without_mark(data: bytes) -> str | None:
    """UTF-16 text that lacks its mark: nearly every other byte of its beginning is NUL."""
    sample = data[:2000]
    for name, nuls in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if len(sample) >= 8 and nuls.count(0) > 0.7 * len(nuls) and sample.count(0) < 0.6 * len(sample):
            try:
                return data.decode(name)
            except UnicodeDecodeError:
                return None
    return None


def _other_characters(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))
