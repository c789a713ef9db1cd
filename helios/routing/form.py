"""What the form of a question says about the language that it can be answered in: weak, general cues.

Requests for lists, counts, orders and groups are what databases and property graphs are for; a question about one
named thing with one property is what a graph of facts is for; claims and long questions that describe their subject
at length are what texts are for; a question that names nothing is about a whole class of things. None of the cues
looks at what a question is about.
"""

import re

from helios.executors.base import Language
from helios.routing.phrases import WORD, is_statement, terms

REQUEST = re.compile(
    r"^\W*(?:list|show|find|return|give|count|display|identify|get|select|retrieve|sort|provide)\b", re.I
)
AGGREGATE = re.compile(
    r"\b(?:how many|number of|average|total|sum of|maximum|minimum|for each|of each|per|at least|at most|more than"
    r"|less than|fewer than|sorted|ordered|order by|descending|ascending|alphabetical|distinct|group(?:ed)? by)\b", re.I
)  # fmt: skip
PLURAL_FIELDS = re.compile(r"\b(?:names?|ids?|codes?|titles?|descriptions?|values?) (?:and|of|for|with)\b", re.I)
TOP = re.compile(
    r"\b(?:top|first|last|bottom) (?:\d+|two|three|four|five|ten)\b|\b\d+ (?:most|least|highest|lowest)\b", re.I
)
CONNECTED = re.compile(r"\b(?:connected|connections?|paths?|hops?|relationships?|linked|neighbou?rs?|nodes?)\b", re.I)
FACT = re.compile(r"^\W*(?:who|what|which|where|when|how|name)\b", re.I)
SHORT = 12
LONG = 16
"""Words."""


def form_scores(question: str) -> dict[Language, float]:
    """A cue for each language, in logits before their weight."""
    scores = dict.fromkeys(Language, 0.0)
    words = len(WORD.findall(question))
    statement = is_statement(question)
    if statement:
        scores[Language.TEXT] += 2.0
    listing = bool(REQUEST.search(question)) + bool(AGGREGATE.search(question)) + bool(PLURAL_FIELDS.search(question))
    if listing:
        scores[Language.SQL] += 0.6 * listing
        scores[Language.CYPHER] += 0.5 * listing
        scores[Language.SPARQL] += 0.2 * listing
        scores[Language.TEXT] -= 0.4 * listing
    if TOP.search(question):
        scores[Language.CYPHER] += 0.7
        scores[Language.SQL] += 0.3
        scores[Language.TEXT] -= 0.7
    if not statement and not any(term.name for term in terms(question)):
        scores[Language.TEXT] -= 0.7
    if CONNECTED.search(question):
        scores[Language.CYPHER] += 0.7
    if FACT.search(question) and words <= SHORT and not listing:
        scores[Language.SPARQL] += 0.5
    if words >= LONG and not listing:
        scores[Language.TEXT] += 0.6
    return scores
