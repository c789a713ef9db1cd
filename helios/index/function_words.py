"""Words that say nothing about what is asked, in English, German, French, Spanish and Chinese.

In a corpus of text they are frequent, and weigh little for that. Tables hardly have any: there "do", "we" or "get"
would be as telling as a name, and find initials.
"""

import re
from collections.abc import Sequence

from helios.index.lexical import terms_of

LIGHT = 0.25
"""Most that a token of such a word weighs, where the mean of a question's tokens is 1."""
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
_CHINESE = "的 了 是 在 有 和 与 谁 什么 哪 哪个 哪些 哪里 多少 几 吗 呢 我 我们 你 你们 他 她 它 们 这 那 请 问"
LANGUAGES = tuple(
    frozenset(term for word in words.split() for term in (word, *terms_of(word)))
    for words in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _CHINESE)
)
_WORD = re.compile(r"\w+")


def function_spans(text: str) -> list[tuple[int, int]]:
    """Characters of the words that say nothing; none where no other word is left."""
    words = [(match.start(), match.end(), match.group().lower()) for match in _WORD.finditer(text)]
    light = _function_words([word for _, _, word in words])
    found = [(start, end) for start, end, word in words if word in light]
    return found if len(found) < len(words) else []


def telling_terms(text: str) -> list[str]:
    """The terms of a text without function words, each once; all terms where nothing else is left."""
    terms = list(dict.fromkeys(terms_of(text)))
    light = _function_words(terms)
    return [term for term in terms if term not in light] or terms


def _function_words(words: Sequence[str]) -> frozenset[str]:
    """Those of the language that most of the words are of: "war" says nothing in German alone."""
    return max(LANGUAGES, key=lambda known: sum(word in known for word in words))
