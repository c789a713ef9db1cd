"""The text of an edge for a reranker: whole where it fits, cut to what the question asks where it does not."""

from helios.retrieval.reranking.evidence_text import evidence_texts
from helios.types import Passage, Segment, SegmentId


def words(texts):
    return [len(text.split()) for text in texts]


def edge_of(sentences: str, cells: tuple[str, ...] = ("Gold", "Vera Lund", "Long jump", "1932")):
    header = ("Medal", "Name", "Event", "Year")
    segment = Segment(SegmentId("t", 0), "Norway at the Games", "Medalists", header, cells)
    return segment, Passage("p", "Vera Lund", sentences)


LIFE = (
    "Vera Lund was a Norwegian athlete. She was born in a small town by the sea. "
    "Her nickname was the Flying Sailor. She died in Bergen in 1987 after a long illness."
)


def test_texts_that_fit_are_whole():
    (text,) = evidence_texts("Who?", [edge_of(LIFE)], max_tokens=400, count_tokens=words)
    assert text.startswith("Norway at the Games, Medalists. Medal: Gold ; Name: Vera Lund")
    assert text.endswith("Vera Lund. " + LIFE)
    segment, passage = edge_of(LIFE)
    alone = evidence_texts("Who?", [(segment, None), (None, passage)], max_tokens=400, count_tokens=words)
    assert " ".join(alone[:1]) + ". " + alone[1] == text


def test_cutting_keeps_what_the_question_asks_about():
    question = "What was the nickname of the long jump winner of 1932?"
    (text,) = evidence_texts(question, [edge_of(LIFE)], max_tokens=52, count_tokens=words)
    assert len(text.split()) <= 52 - 11 - 3
    assert "nickname was the Flying Sailor" in text
    assert "Event: Long jump" in text
    assert "Year: 1932" in text
    assert "illness" not in text
    assert text.index("Norway") < text.index("Event") < text.index("Year") < text.index("nickname")


def test_one_endless_sentence_is_cut_short():
    passage = Passage("p", "Endless", "word " * 500)
    (text,) = evidence_texts("Which word?", [(None, passage)], max_tokens=60, count_tokens=words)
    assert 40 <= len(text.split()) <= 60
