"""English word forms: whether two words are forms of one, how names of a schema read as words, numbers in words.

For property graphs and entity labels, where forms of verbs tell relationships; names of tables meet in `words`.
"""

import re

SUFFIXES = frozenset(
    [
        "s",
        "es",
        "d",
        "ed",
        "r",
        "er",
        "or",
        "rs",
        "ers",
        "ors",
        "ing",
        "ings",
        "ion",
        "ions",
        "tion",
        "tions",
        "ation",
        "ations",
        "y",
        "ies",
        "ied",
        "ier",
        "iers",
        "e",
        "ment",
        "ments",
        "al",
        "als",
        "age",
        "ages",
        "able",
    ]
) | {""}
PLURALS = {"people": "person", "persons": "person", "children": "child", "men": "man", "women": "woman"}
IRREGULAR = {
    "people": "person", "persons": "person", "wrote": "write", "written": "write", "writer": "write",
    "writers": "write", "writing": "write", "bought": "buy", "sold": "sell", "made": "make", "gave": "give",
    "given": "give", "won": "win", "taught": "teach", "led": "lead", "held": "hold", "children": "child", "men": "man",
    "women": "woman", "knew": "know", "known": "know", "owned": "own", "flew": "fly", "flown": "fly", "sent": "send",
    "paid": "pay", "built": "build", "grew": "grow", "drove": "drive", "driven": "drive", "drew": "draw",
    "sang": "sing", "sung": "sing", "spoke": "speak", "spoken": "speak", "met": "meet", "taken": "take",
}  # fmt: skip
COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBERS = {word: amount for amount, word in enumerate(COUNTED.split(" "))}
PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def name_words(name: str) -> tuple[str, ...]:
    """The words of a name of a schema: unitPrice, unit_price and UNIT_PRICE are (unit, price); there is always one."""
    parted = name.isupper() or "_" in name or " " in name
    found = re.findall(r"[^\W_]+", name) if parted else PIECE.findall(name)
    return tuple(word.lower() for word in found) or (name.lower(),)


def singular(word: str) -> str:
    """The singular of an English noun, as far as its ending tells."""
    word = word.lower()
    if word in PLURALS:
        return PLURALS[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def same_noun(left: str, right: str) -> bool:
    """Whether two words are one noun, in either number."""
    return bool(_singulars(left.lower()) & _singulars(right.lower()))


def same_verb(left: str, right: str) -> bool:
    """Whether two words are forms of one verb or of the nouns made of it: acted, actor; supplies, supplier."""
    left, right = (IRREGULAR.get(word.lower(), word.lower()) for word in (left, right))
    if left == right:
        return True
    common = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    if common < 3:
        return False
    return any(
        _ending(left, end) and _ending(right, end) and end >= 3 for end in range(common, max(2, common - 3), -1)
    )  # fmt: skip


def agent(word: str) -> bool:
    """Whether a word names who does something: actor, directors."""
    return re.search(r"(?:er|or)s?$", word.lower()) is not None


def number(word: str) -> float | int | None:
    """A number in digits (`1,200`, `$50`) or in words up to twenty."""
    text = word.strip("$€£").replace(",", "")
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+", text):
        return float(text)
    return NUMBERS.get(word.lower())


def _singulars(word: str) -> set[str]:
    found = {word, PLURALS.get(word, word)}
    if word.endswith("s") and len(word) > 3 and not word.endswith("ss"):
        found.add(word[:-1])
    if word.endswith("ies") and len(word) > 4:
        found.add(word[:-3] + "y")
    if word.endswith("ves"):
        found |= {word[:-3] + "f", word[:-3] + "fe"}
    if word.endswith(("ses", "shes", "ches", "xes", "zes", "oes")):
        found.add(word[:-2])
    return found


def _ending(word: str, end: int) -> bool:
    rest = word[end:]
    return rest in SUFFIXES or (len(rest) > 1 and rest[0] == word[end - 1] and rest[1:] in SUFFIXES)
