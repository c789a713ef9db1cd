"""What people add to a question, in the words that the reader knows: "Which are closed? Name and town, newest first."

Only wording changes here; no word of a domain, a schema or its data is known.
"""

import re

from helios.routing.formulation.asking import LISTING
from helios.routing.formulation.cues import SUPERLATIVES
from helios.routing.formulation.date_spans import MONTH, with_whole_dates
from helios.routing.phrases import is_statement

SENTENCE = re.compile(r"(?:(?<=[?!])|(?<=[a-z]{4}\.))\s+(?=[A-Z\d])")
"""Where one sentence ends and another begins; after St. and Mt. none does."""
NO_FRAGMENT = re.compile(
    r"\b(give|show|list|return|tell|find|display|include|exclude|count|order|sort|leave|ignore|use|do|don['’]t|does|did"
    r"|i|we|what|which|who|whose|how|when|where|why|is|are|was|were|has|have|had|be|can|could|should|would|not|no|if"
    r"|each one)\b",
    re.IGNORECASE,
)
"""Words of sentences that say something, so that they do not only name what is wanted."""
FRAGMENT_WORDS = 16
AND_HOW_MANY = re.compile(r"(?:,| and) how (?:many|much)(?=\s*[.?!]?\s*$)", re.IGNORECASE)
COURTESY = re.compile(r",?\s*\b(please|thanks|thank you)\b(?=\s*[.?!]|\s*$)", re.IGNORECASE)
ALL_THE_SAME = re.compile(
    r",?\s*\b(?:counting|including)\b[^,;?.]*?\b(?:too|as well)\b,?|,\s*\w+ or not(?:,|(?=\s*[.?]))"
    r"|,?\s*\bincluding (?:any|anyone|anybody|those|the ones|people) (?:who|that|which)\b[^,;?.]*"
    r"|,\s*(?:the )?\w+ (?:ones )?included(?=\s*(?:[.,;?!]|$))",
    re.IGNORECASE,
)
"""What is said to make no difference: "counting the closed ones too", "paid or not", "leavers included"."""
SUPERLATIVE = rf"(?:{'|'.join(SUPERLATIVES)}|most \w+|least \w+)"
FROM_THE_TOP = re.compile(
    rf",?\s*\b(?:(?:starting|beginning) (?:from|with)|from) the ({SUPERLATIVE})(?: one)?"
    r"(?: down(?:wards)?| up(?:wards)?| on(?:wards)?)?(?=\s*(?:[.,;?!]|$))",
    re.IGNORECASE,
)
ORDER_ALONE = re.compile(rf"[?.]\s+({SUPERLATIVE} first)\b", re.IGNORECASE)
HIS_OR_HER = re.compile(r"\b(?:his or her|her or his|his/her|her/his)\b", re.IGNORECASE)
EACH_ONCE = re.compile(
    r"(?:\b(?:list|show|name|give|with) |(?:(?<=[.?!,;])|(?<=[.?!,;] )))each (?:\w+ ){0,2}(?:just |only )?once\b",
    re.IGNORECASE,
)
COSTS_MOST = re.compile(r"\b(which|what) ((?:\w+ ){1,3}?)costs? the (most|least)\b", re.IGNORECASE)
ADD_UP = re.compile(r"\b(what|how much) (?:do|does|did) (.+?) add up to\b", re.IGNORECASE)
ADD_UP_TO_MORE = re.compile(r"\badds? up to (?=(?:more|less|over|under|at) )", re.IGNORECASE)


HIGHEST = {"most": "highest", "least": "lowest"}
WANTED = re.compile(r"^\s*(?:i need|i want|i['’]d like|we need|can you (?:give|show|tell) me|just)\b", re.IGNORECASE)
"""What opens a sentence that says what is wanted."""
NONE_LEFT_OUT = re.compile(
    r"[,.;]?\s*\b(?:(?:leave|leaving) out|(?:do|does)n['’]t count|not counting|ignore|ignoring|except) "
    r"(?:anyone|anybody|any|those|ones) (?:with|who (?:has|have|had)|that (?:has|have|had)) "
    r"(?:none|nothing|never \w+ (?:one|any))\b",
    re.IGNORECASE,
)
"""What leaves out only what has no rows anyway."""
LEFT_OUT = re.compile(
    r"[,.;]\s*(?:with |leave |leaving )?(?:the |any )?(\w+ (?:ones|\w{3,}s)) "
    r"(?:left out|not counted|not included|excluded|do not count|don['’]t count|out)(?=\s*(?:[.?!,]|$))",
    re.IGNORECASE,
)
"""What a question ends with that leaves something out: "cancelled ones not counted"."""
DAY_DONE = re.compile(r"\bthe (?:day|date) (?:it|they|he|she|each) (?:was|were) (\w+)", re.IGNORECASE)
IN_ALL = re.compile(r"\b(?:all told|all together|in all(?=\s*(?:[,.;?!]|and\b|$)))", re.IGNORECASE)
RUNS_OUT = re.compile(
    r"\b(?:runs?|running|ran) out(?= (?:before|after|on|in|by|between|since|this|next)\b)", re.IGNORECASE
)


TAKE = r"(?:take in|took in|taken in|take|took|taken|bring in|brought in|spend|spent)"
HOW_MUCH_TAKEN = re.compile(rf"\bhow much (?:money )?(?:do|does|did|has|have) (.+?) {TAKE}\b", re.IGNORECASE)
TAKEN_MORE = re.compile(
    rf"\b{TAKE}(?= (?:more than|less than|over|under|at least|at most) "
    r"(?:[£$€]|[\d.,]+ ?(?:[£€]|pounds|euros?|dollars)))",
    re.IGNORECASE,
)
"""What is taken and spent; hours are taken too, so money has to be spoken of."""


OF_ITS_KIND = re.compile(
    r"\b(average|mean)( [\w ]{1,30}?)? (for|of|in|on|at|within) the (\w+) (?:that )?"
    r"(?:they|it|he|she|each(?: one)?)(?:['’](?:re|s)| are| is| was| were| belongs?| stands?| works?| lives?) "
    r"(?:on|in|at|of|to|for|from|under)\b",
    re.IGNORECASE,
)
"""What is compared within one kind: "the average for the floor they're on"."""
BOTH_MONTHS = re.compile(rf"\bboth ({MONTH}) and (?:in )?({MONTH}) (\d{{4}})", re.IGNORECASE)
ONE_BY_ONE = re.compile(r"\b(\w{3,}) by \1\b", re.IGNORECASE)
HAS_ANYONE = re.compile(r"^(?:has|have) (?:anyone|anybody|someone) (?=\w+(?:ed|n|t)\b)", re.IGNORECASE)
READ_OUT = re.compile(r"^read (?:me |us )?out\b(?: to (?:me|us))?", re.IGNORECASE)
WHICH_ALONE = re.compile(r"\?\s+(?:which|who|what)(?: ones?| are they| were they)?\s*\?\s*$", re.IGNORECASE)
"""What asks again for what a question already asks for."""
ARE_THERE = re.compile(r"^(?:are|were|is|was) there (?:any|some)\b", re.IGNORECASE)


TEXT = (
    r"(?:names?|titles?|notes?|descriptions?|comments?|remarks?|subjects?|texts?|headlines?|summary|summaries|details|"
    r"messages?|reasons?)"
)
"""What columns of text are called."""
NO_LITERAL = (
    r"an?|the|any\w*|some\w*|no|none|nothing|more|less|at|over|under|only|both|all|each|either|special|it|them|word|words|"
    r"letter|phrase|string|text|prefix|one|two|three|four|five|six|seven|eight|nine|ten"
)
LITERAL = (
    rf"(?:an? |the )?(?P<literal>(?!(?:{NO_LITERAL})\b)[^\W\d_][\w'’-]*"
    r"(?: (?!(?:and|or|in|as|on|of)\b)[^\W\d_][\w'’-]+){0,2}?)"
)
"""Up to three words that are looked for in a text as they stand."""
STANDS_IN = re.compile(
    rf"\b(?P<verb>with|have|has|having|had|contain|contains|containing|mention|mentions|mentioning) {LITERAL} "
    rf"(?:somewhere |anywhere )?in (?:the|their|its|his|her) (?P<column>(?:\w+ )?{TEXT})\b",
    re.IGNORECASE,
)
SAYS = re.compile(
    rf"\b(?P<column>(?:\w+ )?{TEXT}) (?:that )?(?:mention(?:s|ed|ing)?|talk(?:s|ing)? about|refer(?:s|ring)? to|"
    rf"says? something about|contain(?:s|ing)?) {LITERAL}"
    r"(?=\s*(?:[?.,;!]|$|(?:and|or|in|from|since|that|which|who|before|after)\b))",
    re.IGNORECASE,
)


def rephrased(question: str, *, money: bool = False) -> str:
    """A question without courtesies, with requests for the columns that a fragment lists, orders and spans of months
    spelled out; with `money` where prices times numbers are known, what is taken and spent by the name of that."""
    text = BOTH_MONTHS.sub(r"both \1 \3 and \2 \3", ALL_THE_SAME.sub(" ", COURTESY.sub("", question.strip())))
    if money:
        text = TAKEN_MORE.sub("have total revenue of", HOW_MUCH_TAKEN.sub(r"what is the total revenue of \1", text))
    text = LEFT_OUT.sub(r", not counting \1", NONE_LEFT_OUT.sub("", DAY_DONE.sub(r"the \1 date", text)))
    text = with_whole_dates(RUNS_OUT.sub("expires", IN_ALL.sub("in total", text)))
    text = ORDER_ALONE.sub(lambda found: ", " + found[1].lower(), FROM_THE_TOP.sub(r", \1 first", text))
    text = EACH_ONCE.sub("each one once", HIS_OR_HER.sub("their", text))
    text = COSTS_MOST.sub(lambda found: f"{found[1]} {found[2]}has the {HIGHEST[found[3].lower()]} total cost", text)
    text = ADD_UP_TO_MORE.sub("total ", ADD_UP.sub(r"what is the total of \2", text))
    text = ONE_BY_ONE.sub(lambda found: f"for each {found[1].lower()}", text)
    text = OF_ITS_KIND.sub(r"\1\2 of their \4", text)
    text = READ_OUT.sub("List", HAS_ANYONE.sub("Who has ", text))
    if ARE_THERE.match(text) and WHICH_ALONE.search(text):
        text = ARE_THERE.sub("Which", WHICH_ALONE.sub("?", text))
    text = SAYS.sub(r'\g<column> containing "\g<literal>"', STANDS_IN.sub(_standing_in, text))
    first, *rest = SENTENCE.split(text)
    if LISTING.match(first) and is_statement(first):
        first = f"List {first[0].lower()}{first[1:]}"
    return " ".join([first, *map(_requested, rest)])


def _standing_in(found: re.Match[str]) -> str:
    """What has a word in its name: "with Gardens in the title" """
    verb = found["verb"] if found["verb"].lower() in ("with", "have", "has", "having", "had") else "with"
    return f'{verb} a {found["column"]} containing "{found["literal"]}"'


def _requested(sentence: str) -> str:
    """A sentence that only names what is wanted, as a request: "Name and price." """
    if WANTED.match(sentence):
        return WANTED.sub("Give", sentence)
    if NO_FRAGMENT.search(AND_HOW_MANY.sub("", sentence)) or len(sentence.split()) > FRAGMENT_WORDS:
        return sentence
    wanted = re.sub(r"\s+only(?=\s*[.!]?$)", "", sentence)
    opening = wanted.split(maxsplit=1)[0]
    return f"Give {wanted if opening.isupper() else wanted[0].lower() + wanted[1:]}"
