"""Which language a text is in, and what a word of that language loses on its way to a term.

English, German, French, Spanish by their commonest words; Chinese, Japanese and Korean by their characters. An index
has one analysis for all of its texts and questions, so that a name is the same term in a German row and in an English
question: endings are taken off for every language that a fair share of its texts is in.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from helios.errors import IndexFormatError

UNSPACED = "々〇぀-ヿ㐀-鿿가-힯豈-﫿\U00020000-\U0003134f"
"""Characters of scripts that are written without blanks, or with words and particles in one, as within a pattern."""
FAIR_SHARE = 0.1
"""Of the words that tell a language, the share from which on it counts."""
SAMPLE = 2000
"""Texts at most that tell the languages of an index, and characters of each."""
PART = 4
"""Letters of a part of a compound, at least."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_RUNS = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]+")
_WORD = re.compile(r"\w+")
_LETTERS = re.compile(rf"[^\W\d_{UNSPACED}]+")
_ENGLISH = """
    a an the of in on at by for from to with and or as is are was were be been being am do does did done has have
    had having that which who whom whose what where when why how there this these those it its they them their
    theirs he she his him her hers i me my mine we us our ours you your yours any some all each every please also
    then than so such if into onto about can could would will shall should might must get gets got give show list
    tell find say said many much let not no only just s t d re ve ll m o
"""
_GERMAN = """
    der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird werden wurde wurden
    hat haben hatte hatten wer wen wem was wann wo wie viele viel welche welcher welches welchen welchem warum wieso
    es er sie ihr ihre ihren ihrem sein seine wir uns unser unsere ich mir mich mein meine man zu zum zur im am in
    an auf mit von vom bei für aus nach über unter als auch noch nicht kein keine gibt gab dass denn so
"""
_FRENCH = """
    le la les l un une des du de d et ou est sont était étaient sera a ont avait avaient qui que qu quoi quel quelle
    quels quelles quand où comment combien pourquoi il elle ils elles on nous vous je j tu me m te se s ce c cet
    cette ces son sa ses leur leurs notre nos votre vos mon ma mes y en dans par pour sur avec au aux ne n pas plus
    t
"""
_SPANISH = """
    el la los las un una unos unas y o es son era eran fue fueron ser está están ha han había hay quién quien
    quiénes qué cuál cuáles cuándo cuando dónde donde cómo cuánto cuántos cuánta cuántas por para con sin de del al
    a en se su sus nos nuestro nuestra nuestros mi mis lo le les me te que no
"""
COMMON: Mapping[str, tuple[str, ...]] = {
    code: tuple(words.split()) for code, words in (("en", _ENGLISH), ("de", _GERMAN), ("fr", _FRENCH), ("es", _SPANISH))
}
"""Words that say nothing about what is asked, and much about the language, by ISO 639-1 code."""
_UNSPACED_COMMON = """
    什么 什麼 哪个 哪個 哪些 哪里 哪裡 多少 怎么 怎麼 我们 我們 你们 你們 他们 他們 请问 請問 的 了 吗 嗎 呢
    谁 誰 是 哪 几 幾 です ますか ました どこ いつ 何 は が を の 누구 무엇 언제 어디
"""
UNSPACED_COMMON = tuple(_UNSPACED_COMMON.split())
"""Such words of Chinese, Japanese and Korean, longer ones of the same beginning first."""
_SETS = {code: frozenset(word for word in words if len(word) > 1) for code, words in COMMON.items()}


def recognise(text: str) -> str:
    """ISO 639-1 code of a text's language (en, de, fr, es, zh, ja, ko); empty where nothing tells it."""
    return _told(text)[0]


def _told(text: str) -> tuple[str, int]:
    """The language, and how many different words or characters tell it."""
    words, unspaced = set(_LETTERS.findall(text.lower())), "".join(dict.fromkeys(_UNSPACED.findall(text)))
    if len(unspaced) > len(words):
        code = "ko" if re.search("[가-힯]", unspaced) else "ja" if re.search("[぀-ヿ]", unspaced) else "zh"
        return code, len(unspaced)
    hints = Counter({code: len(words & known) for code, known in _SETS.items()})
    (first, most), (_, next_most) = hints.most_common(2)
    return (first, most - next_most) if most > next_most else ("", 0)


@dataclass(frozen=True, slots=True)
class Analysis:
    """How the texts and the questions of an index become terms."""

    languages: tuple[str, ...] = ("en",)
    """What the texts are in, by code and sorted; empty for an index that was built before this was asked."""
    bigrams: bool = True
    """Whether scripts without blanks are cut into pairs of characters; without, what no blank parts is one term."""

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> "Analysis":
        """For texts that stand for an index: the languages of a fair share of what tells any, or English."""
        found: Counter[str] = Counter()
        for text in texts:
            code, hints = _told(text[:SAMPLE])
            found[code] += hints
        fair = [code for code, count in found.items() if code and count >= FAIR_SHARE * found.total()]
        return cls(tuple(sorted(fair)) or ("en",))

    @classmethod
    def of_record(cls, record: object) -> "Analysis":
        """What `record` wrote; an index without one was built before. IndexFormatError for anything else."""
        match record:
            case None:
                return BEFORE
            case {"languages": list(codes), "bigrams": bool(bigrams)} if all(type(code) is str for code in codes):
                return cls(tuple(codes), bigrams)
        raise IndexFormatError(f"no analysis: {record!r}; expected languages, a list of codes, and bigrams")

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"languages": list(self.languages), "bigrams": self.bigrams}

    def terms(self, text: str) -> list[str]:
        """Lower-cased words without accents and endings, pairs of characters where words are not parted, in order."""
        folded = text.lower()
        if folded.isascii():
            return [self.stem(word) for word in _WORD.findall(folded)]
        if not self.bigrams or not _UNSPACED.search(folded):
            return [self.stem(word) for word in _WORD.findall(without_accents(folded))]
        found: list[str] = []
        for run in _RUNS.findall(unicodedata.normalize("NFKC", folded)):
            if _UNSPACED.match(run):
                found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
            else:
                found += [self.stem(word) for word in _WORD.findall(without_accents(run))]
        return found

    def stem(self, word: str) -> str:
        """A folded word without the endings of these languages; English ones where no other language has endings."""
        return _stemmed(self.languages, word)

    def splits(self, term: str) -> list[tuple[str, str]]:
        """Ways to part a German compound into two terms, the longest second part first; none where no text is German.

        What `stem` takes off between them, as an s or en, belongs to neither.
        """
        if "de" not in self.languages or len(term) < 2 * PART or not term.isalpha():
            return []
        found = [(term[:cut], term[cut:]) for cut in range(PART, len(term) - PART + 1)]
        return list(dict.fromkeys((own, tail) for head, tail in found for own in (head, self.stem(head))))


@lru_cache(maxsize=65536)
def _stemmed(languages: tuple[str, ...], word: str) -> str:
    for ending in [ENDINGS[code] for code in languages if code in ENDINGS] or [english]:
        word = ending(word)
    return word


def without_accents(text: str) -> str:
    """A text whose letters have lost their accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def english(word: str) -> str:
    """Harman's S-stemmer: the mildest, so that names stay themselves."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "us":
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] in "aeo":
        return word
    return word[:-1]


def german(word: str) -> str:
    """Spellings of umlauts and of ß made one, an ending of declension taken off: Häuser, Haeuser, Haus."""
    word = re.sub(r"(?<![aeq])ue", "u", word.replace("ß", "ss").replace("ae", "a").replace("oe", "o"))
    return _without(word, r"(?:ern|e[mnrs]|[en]|(?<=[bdfghklmnrt])s)$")


def french(word: str) -> str:
    """Plural endings: journaux, journal; bateaux, bateau; routes, route."""
    if word.endswith("aux") and not word.endswith("eaux") and len(word) > 4:
        return word[:-3] + "al"
    return word if word.endswith("ss") else _without(word, r"(?:s|(?<=eu|au|ou)x)$")


def spanish(word: str) -> str:
    """Plural endings: animales, animal; parcelas, parcela; luces, luz."""
    if len(word) > 4 and word.endswith("ces"):
        return word[:-3] + "z"
    return _without(word, r"(?:(?<=[djlnrxyz])es|s)$")


def _without(word: str, ending: str) -> str:
    """A word of letters without an ending, where three letters or more are left."""
    left = re.sub(ending, "", word)
    return left if len(left) >= 3 and word.isalpha() else word


ENDINGS: Mapping[str, Callable[[str], str]] = {"en": english, "de": german, "es": spanish, "fr": french}
"""What the words of a language lose."""
BEFORE = Analysis((), bigrams=False)
"""Of indexes that say nothing: English endings alone."""
