"""What an encyclopedia passage says about its subject, as pieces that questions can be made of.

Patterns over English text read three things: what the subject is (`noun`), clauses that describe it without
its name ("who played as a striker"), and facts with an answer ("In what year was ... founded ?" → "1916").
Text may be tokenised, as in OTT-QA, with spaces around punctuation; answers are always substrings of it.
"""

import re
from dataclasses import dataclass

from helios.models.text import split_sentences
from helios.types import Passage

MAX_CLAUSE_WORDS = 15
MIN_CLAUSE_WORDS = 3
MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = rf"(?:\d{{1,2}} {MONTH} ?,? \d{{4}}|{MONTH} \d{{1,2}} ?,? \d{{4}})"
WHEN = rf"(?:{DATE}|{MONTH} \d{{4}}|\d{{4}})"
YEAR = r"(?:1[0-9]|20)\d{2}"
WORD = r"[A-Z][\w'’.-]*"
NAME = rf"(?:{WORD}(?: (?:(?:of the|of|the|de|von|van|and|la|del|di|da|al|'s|&) )?{WORD})*)"
NUMBER = r"\d[\d,.]*(?: (?:million|billion|thousand))?"


@dataclass(frozen=True, slots=True)
class Fact:
    """A question about the subject, {np} standing for it, and the answer that the passage gives."""

    forms: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """All that is known of one subject; empty parts where the patterns found nothing."""

    noun: str
    """What it is, without an article: "football club"."""
    is_person: bool
    clauses: tuple[str, ...]
    """Relative clauses and participles that follow a noun: "who ...", "that ...", "whose ...", "born in ..."."""
    facts: tuple[Fact, ...]


PATTERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"\bborn (?:on )?({DATE})", ("When was {np} born ?", "What is the birth date of {np} ?",
                                   "On what date was {np} born ?")),
    (rf"\bborn [^.;()]*?\b({YEAR})\b", ("In what year was {np} born ?", "What is the birth year of {np} ?")),
    (rf"\bborn (?:{WHEN} )?(?:, )?(?:in|at) ({NAME})", ("Where was {np} born ?", "What is the birthplace of {np} ?",
                                                   "In which place was {np} born ?")),
    (rf"(?:\bdied (?:on )?|{DATE} [-–] )({DATE})", ("When did {np} die ?", "What was the date of death of {np} ?")),
    (rf"\b(?:founded|formed) (?:on |in )({WHEN})", ("When was {np} founded ?", "What year was {np} founded in ?")),
    (rf"\bestablished (?:on |in )({WHEN})", ("When was {np} established ?", "In what year was {np} established ?")),
    (rf"\b(?:built|constructed) (?:on |in )({WHEN})", ("When was {np} built ?", "In what year was {np} built ?")),
    (rf"\bopened (?:on |in )({WHEN})", ("When did {np} open ?", "In what year did {np} open ?")),
    (rf"\bcompleted (?:on |in )({WHEN})", ("When was {np} completed ?", "What was the year of completion of {np} ?")),
    (rf"\breleased (?:on |in )({WHEN})", ("When was {np} released ?", "What is the release date of {np} ?")),
    (rf"\bpublished (?:on |in )({WHEN})", ("When was {np} published ?", "In what year was {np} published ?")),
    (rf"\b(?:premiered|debuted) (?:on |in )({WHEN})", ("When did {np} premiere ?",)),
    (rf"\bdirected by ({NAME})", ("Who directed {np} ?", "Who is the director of {np} ?")),
    (rf"\bwritten by ({NAME})", ("Who wrote {np} ?", "Who is the writer of {np} ?")),
    (rf"\bproduced by ({NAME})", ("Who produced {np} ?", "Who is the producer of {np} ?")),
    (rf"\bdeveloped by ({NAME})", ("Who developed {np} ?", "Which company developed {np} ?")),
    (rf"\bpublished by ({NAME})", ("Who published {np} ?", "Who is the publisher of {np} ?")),
    (rf"\bdesigned by ({NAME})", ("Who designed {np} ?", "Who is the designer of {np} ?")),
    (rf"\bcreated by ({NAME})", ("Who created {np} ?",)),
    (rf"\bowned by ({NAME})", ("Who owns {np} ?", "Who is the owner of {np} ?")),
    (rf"\boperated by ({NAME})", ("Who operates {np} ?", "Who is the operator of {np} ?")),
    (rf"\bmanaged by ({NAME})", ("Who manages {np} ?",)),
    (rf"\bstarring ({NAME})", ("Who starred in {np} ?", "Who is the star of {np} ?")),
    (rf"\bnamed (?:after|for|in honor of) ({NAME})", ("Who or what is {np} named after ?",
                                                       "After whom or what is {np} named ?")),
    (rf"\b(?:located|situated) in (?:the )?({NAME}(?: , {NAME})?)", ("Where is {np} located ?",)),
    (rf"\b(?:based|headquartered) in ({NAME}(?: , {NAME})?)", ("Where is {np} based ?",
                                                                "In which place is {np} based ?")),
    (rf"\bpopulation (?:\w+ )?(?:of|was|is) (?:about |around |over )?({NUMBER})", ("What is the population of {np} ?",
                                                                         "How many people live in {np} ?")),
    (rf"\b(?:capacity of|seating capacity (?:is|of)|holds|seats) (?:about |around |over )?({NUMBER})",
     ("What is the capacity of {np} ?", "How many people can {np} hold ?")),
    (rf"\b(?:area of|covers|covering) (?:an area of )?(?:about |around |over )?"
     rf"({NUMBER} (?:square \w+|km2|km ²|acres|ha|hectares))", ("What is the area of {np} ?", "How large is {np} ?")),
    (rf"\b(?:elevation of|altitude of) (?:about )?({NUMBER} (?:m|ft|feet|metres|meters))\b",
     ("What is the elevation of {np} ?", "At what altitude does {np} lie ?")),
    (rf"\b(?:enrollment|enrolment) (?:of|was|is) (?:about |over )?({NUMBER})", ("How many students attend {np} ?",)),
    (rf"\b(?:home (?:stadium|ground|arena|venue) is|home (?:games|matches) (?:at|in)) (?:the )?({NAME})",
     ("What is the home venue of {np} ?", "Where does {np} play its home games ?")),
    (rf"\bnicknamed (?:the )?({NAME})", ("What is the nickname of {np} ?",)),
    (rf"\b(?:better|best|also|commonly|formerly|previously|originally) known as (?:the )?({NAME})",
     ("What is another name of {np} ?", "What is {np} also known as ?")),
    (rf"\b(?:attended|graduated from|educated at|studied at) (?:the )?({NAME})",
     ("Which school did {np} attend ?", "Where did {np} study ?")),
    (r"\bplay(?:s|ed) as (?:an? )?([a-z-]+(?: (?:back|midfielder|forward|half|guard))?)\b",
     ("What position does {np} play ?", "In what position did {np} play ?")),
    (rf"\b(?:currently )?plays for (?:the )?({NAME})", ("Which team does {np} play for ?",)),
    (rf"\bmarried (?:to )?({NAME})", ("Who is {np} married to ?", "Who is the spouse of {np} ?")),
    (rf"\b(?:son|daughter) of ({NAME})", ("Who is a parent of {np} ?",)),
    (rf"\b(?:tributary of|flows into) (?:the )?({NAME})", ("Which river does {np} flow into ?",)),
)  # fmt: skip
"""(pattern with one group, questions that the group answers)."""

HAS_DONE = re.compile(
    rf"\bhas (won|sold|released|scored|made|written|directed|published|produced) (?:over |more than |about )?"
    rf"((?:{NUMBER})|two|three|four|five|six|seven|eight|nine|ten) ([a-z]+s)\b"
)
DEFINITION = re.compile(r"^.{3,160}? (?:is|was|are|were) (?:an?|the|one of the) (.+)$")
NOUN_END = re.compile(
    r" (?:,|\(|;|:|\.|in|of|on|at|from|for|by|to|with|and|or|who|that|which|where|whose|based|located|situated|"
    r"near|between|during|under|as|about|over|within|along|held|played|playing|working|serving|representing|"
    r"\w+(?<!un)ed|'s)(?: |$)"
)
HOLLOW_TEXT = """
one part member name list list group set type kind form series number result result edition season version term word
use class pair variety son daughter fact best most only first second third fourth tenth last latest given
"""
HOLLOW = frozenset(HOLLOW_TEXT.split())
"""Nouns that say nothing without what follows them."""
PERSON = re.compile(r"^[^.]{0,120}\bborn\b|[.] (?:He|She) ")
SUBJECTS = """
club team film movie album song single series show game company school university college city town village station
airport stadium building book novel river band group party island ship bridge museum church mountain lake park race
event award arena
""".split()  # noqa: SIM905 -- a list of words reads best as words
PRONOUN = re.compile(rf"^(?:He|She|It|They|The (?:\w+ )?(?:{'|'.join(SUBJECTS)})) (?:is |was |were |are )?(?=[a-z])")
TAIL = re.compile(r"(?:who|that|which|based|located|situated|in|from|of|by|directed|written|released|held|for)\b")
AGENT = re.compile(r"(?:er|or|ist|ian|man|woman|ess|ete|star|coach|chef|judge|general|poet|model|pilot)$")
"""Ends of nouns for persons: in "American country and folk singer", "American country" is none."""
POSSESSIVE = re.compile(r"^(?:His|Her|Its|Their) (?=[a-z])")
VERB = re.compile(
    r"(?:is|was|are|were|has|had|have|can|could|would|currently|originally|first|later|\w+ed|\w{2,}s|won|made|"
    r"wrote|began|became|took|ran|sang|led|held|met|set|sold|left|went|came|grew|taught|fought|lost|gave|rose|got)$"
)
ASIDES = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])")
HAS_VERB = re.compile(r" (?:is|was|are|were|has|had|have|can|\w+ed|won|made|became|began|took|includes?|\w+s) ")
CUT = re.compile(r" (?:,|;|:|and|but|which|while|where|when|before|after|although|because|since|until|with) ")
ADVERBS = re.compile(r"^(?:also|currently|then|later|subsequently|additionally|primarily|usually) ")


def read_facts(passage: Passage) -> PassageFacts:
    """Everything that the patterns find in a passage."""
    text = " ".join(passage.text.split())
    sentences = split_sentences(ASIDES.sub("", text)) or [""]
    is_person = bool(PERSON.search(text)) and not text.startswith("The ")
    noun, clauses = _definition(sentences[0], is_person=is_person)
    for sentence in sentences[1:]:
        if clause := _clause(sentence, is_person=is_person):
            clauses.append(clause)
    if is_person and (born := re.search(rf"\bborn (?:on )?({DATE})", text)):
        clauses.append(f"born on {born.group(1)}")
    named = _naming_words(passage.title)
    kept = tuple(clause for clause in dict.fromkeys(clauses) if not named & set(_words(clause)))
    return PassageFacts(noun, is_person, kept, tuple(_facts(text)))


def _facts(text: str) -> list[Fact]:
    facts = []
    for pattern, forms in PATTERNS:
        if found := re.search(pattern, text):
            facts.append(Fact(forms, found.group(1).strip(" ,.")))
    if found := HAS_DONE.search(text):
        verb, number, things = found.groups()
        facts.append(Fact((f"How many {things} has {{np}} {verb} ?",), number.strip(" ,.")))
    return facts


def _definition(sentence: str, *, is_person: bool) -> tuple[str, list[str]]:
    """The noun of "X is a NOUN who ..." and what follows it, as a clause."""
    match = DEFINITION.match(sentence)
    if not match:
        return "", []
    rest = match.group(1).rstrip(" .")
    end = NOUN_END.search(f" {rest} ", 1)
    noun = (f" {rest} "[: end.start()] if end else rest).strip()
    words = noun.split()
    if (
        not words
        or len(words) > 5
        or words[-1].lower() in HOLLOW
        or words[-1].endswith("ly")
        or not words[-1].isalpha()
        or words[-1][0].isupper()
    ):
        return "", []
    tail = rest[len(noun) :].strip()
    if re.match(r"(?:and|or|,) ", tail) and is_person and not AGENT.search(noun):
        return "", []
    if not re.match(
        r"(?:who|that|which|based|located|situated|in|from|of|by|directed|written|released|held|for)\b", tail
    ):
        return noun, []
    tail = re.sub(r"^which\b", "that", tail)
    return noun, [cut] if (cut := _cut(tail)) else []


def _clause(sentence: str, *, is_person: bool) -> str:
    """A sentence about "he", "it" or "the club" as a relative clause; empty where it has another subject."""
    sentence = sentence.rstrip(" .")
    who = "who" if is_person else "that"
    if match := POSSESSIVE.match(sentence):
        clause = _cut(f"whose {sentence[match.end() :]}")
        return clause if HAS_VERB.search(clause) else ""
    match = re.match(PRONOUN, sentence)
    if not match:
        return ""
    subject = re.match(r"(?:He|She|It|They|The(?: \w+){1,2}?)(?= (?:is|was|were|are|[a-z]))", sentence)
    predicate = sentence[match.end() :]
    linking = re.search(r" (is|was|were|are) $", match.group(0))
    predicate = ADVERBS.sub("", predicate)
    if linking:
        return _cut(f"{who} {linking.group(1)} {predicate}")
    if subject is None or not VERB.match(predicate.split()[0]):
        return ""
    return _cut(f"{who} {predicate}")


def _cut(clause: str) -> str:
    """The clause up to its first good break, of a length that a question bears; empty where there is none."""
    words = clause.split()
    clause = re.split(r" , (?:that|who|which|where|and) ", clause)[0]
    if len(words) > 7 and (found := CUT.search(clause, len(" ".join(words[:6])))):
        clause = clause[: found.start()]
    clause = clause.strip(" ,;:-")
    length = len(clause.split())
    fits = MIN_CLAUSE_WORDS <= length <= MAX_CLAUSE_WORDS
    dangling = re.search(
        r" (?:the|a|an|of|in|and|by|to|for|with|is|was|at|on|as|its|his|her|their|,|U\.S|\w|No|St|Mt|Dr|vs)$", clause
    )
    return clause if fits and not dangling and "(" not in clause and '"' not in clause else ""


def _naming_words(title: str) -> set[str]:
    return {word for word in _words(title) if len(word) > 3}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
