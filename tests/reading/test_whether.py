"""Yes and no from the sentence or the row that is nearest to a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.models.encoder import MiniLMEncoder
from helios.reading.question import yes_or_no
from helios.reading.vectors import EncodedVectors
from helios.reading.whether import EDGES, Question, WhetherAnswer, WhetherReader, asks_whether, denied_by, denies
from helios.types import Evidence, EvidenceEdge, Origin, Passage, Segment, SegmentId

RULES = Passage(
    "rules",
    "House rules",
    "The hall closes at nine. Candles are forbidden. Bicycles may be left in the corridor. Guests may borrow the boat, "
    "but not the car.",
)
ROOMS = [
    Segment(SegmentId("rooms", n), "Rooms", "", ("Room", "Seats", "Projector"), cells)
    for n, cells in enumerate([("Attic", "12", "no"), ("Cellar", "40", "yes"), ("Shed", "4", "")])
]


def evidence(question: str, *nodes: Passage | Segment) -> Evidence:
    edges = [
        EvidenceEdge(
            rank, 1.0, 0.5, Origin.LINKED, node if isinstance(node, Segment) else None,
            node if isinstance(node, Passage) else None, (),
        )
        for rank, node in enumerate(nodes, start=1)
    ]  # fmt: skip
    return Evidence(question, tuple(edges), present=0.7)


@pytest.fixture(scope="module")
def read():
    vectors = EncodedVectors(MiniLMEncoder.load())

    def read(question: str, *nodes: Passage | Segment) -> list[WhetherAnswer]:
        return WhetherReader().read(question, vectors.question(question), evidence(question, *nodes), vectors)

    return read


@pytest.mark.parametrize(
    "question",
    [
        "Are dogs allowed in the hall?", "may i park here", "was the van sold?", "insurance paid yet?",
        "ist der Keller trocken", "Darf man im Saal rauchen?", "¿Se admiten perros?", "puede entrar el perro",
        "les chiens sont admis ?", "la clé a-t-elle été rendue", "Peut-on fumer ici ?", "可以带狗吗", "有没有停车位",
        "能不能退货",
    ],
)  # fmt: skip
def test_questions_that_ask_for_yes_or_no(question):
    assert asks_whether(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which dogs are allowed?", "how many rooms have a projector?", "price of the attic", "who has the key?",
        "Was kostet der Saal?", "wann ist die Halle zu", "¿Cuándo abre?", "combien de salles y a-t-il",
        "où est-ce qu'on se gare", "什么时候关门", "name of the dog?", "Was gibt's zu essen?",
        "Worauf muss ich achten?", "Preis für das Zimmer?", "Prix du billet ?", "Qu'a-t-il dit ?", "电话号码？",
        "怎样去机场？", "amount paid by Ann",
        "Is the van red or blue?", "can you tell me who has the key?",
    ],
)  # fmt: skip
def test_questions_that_ask_for_more(question):
    assert not asks_whether(question)


def test_the_word_is_of_the_language_of_the_question():
    assert yes_or_no("Darf man im Saal rauchen?", yes=False) == "nein"
    assert yes_or_no("可以带狗吗", yes=True) == "是"
    assert yes_or_no("may i park here", yes=True) == "yes"
    assert yes_or_no("¿Puedo aparcar?", yes=True) == "sí"
    assert yes_or_no("Peut-on fumer ici ?", yes=False) == "non"
    assert yes_or_no("Dürfen Hunde rein?", yes=False) == "nein"


@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        ("can I leave my bicycle in the corridor?", "yes", "Bicycles may be left in the corridor."),
        ("can we light candles", "no", "Candles are forbidden."),
        ("can guests borrow the boat?", "yes", "Guests may borrow the boat, but not the car."),
        ("can guests borrow the car?", "no", "Guests may borrow the boat, but not the car."),
    ],
)
def test_a_text_is_read_and_its_sentence_cited(read, question, answer, cited):
    best = read(question, RULES)[0]
    assert (best.text, best.citations[0].text) == (answer, cited)
    assert best.citations[0].passage_id == "rules"


def test_texts_in_other_languages_are_read_in_english(read):
    text = Passage("regeln", "Hausordnung", "Der Saal schließt um neun. Hunde sind im Saal nicht erlaubt.")
    assert read("Sind Hunde im Saal erlaubt?", text)[0].text == "nein"


@pytest.mark.parametrize(
    ("question", "answer", "row"),
    [
        ("does the attic have a projector?", "no", 0),
        ("is there a projector in the cellar", "yes", 1),
        ("does the shed have a projector?", "no", 2),
    ],
)
def test_a_row_is_read_and_its_cells_cited(read, question, answer, row):
    best = read(question, ROOMS[row])[0]
    assert best.text == answer
    assert {one.text for one in best.citations} == {ROOMS[row].cells[0], ROOMS[row].cells[2]} - {""}
    assert all(one.segment_id == ROOMS[row].segment_id for one in best.citations)


def test_what_says_it_and_what_says_the_opposite_are_weighed(read):
    question, permits = "may we light candles?", Passage("q", "Terrace", "Candles are welcome on the terrace.")
    alone, both = read(question, RULES), read(question, RULES, permits)
    assert [one.text for one in alone][0] == "no"
    assert {one.text for one in both} == {"yes", "no"}
    assert next(one for one in both if one.text == "no").confidence < alone[0].confidence
    assert read(question, Passage("q", "Boiler", "The boiler was serviced in May."))[0].confidence < alone[0].confidence


@pytest.mark.parametrize(
    "question",
    ["who has the key?", "is it not allowed to light candles?", "darf man keine Kerzen anzünden?", "??"],
)
def test_nothing_is_read_for_other_questions_and_those_that_negate(read, question):
    assert read(question, RULES) == []
    assert read("is there a key?") == []


def test_only_the_best_edges_are_read(read):
    others = [Passage(f"p{n}", "Boiler", f"The boiler was serviced in May {1990 + n}.") for n in range(EDGES)]
    assert all(one.citations[0].passage_id != "rules" for one in read("can we light candles?", *others, RULES))


@given(st.text("aY no.;,:\n是不-0✓", max_size=30), st.text("aY no.;,:\n是不-0✓", max_size=12))
def test_any_text_and_any_cell_can_be_read(read, text, cell):
    row = Segment(SegmentId("t", 0), "", "", ("", "a"), (cell, ""))
    for one in read("is a there?", Passage("p", "", text), row):
        assert 0.0 < one.confidence < 1.0


@pytest.mark.parametrize(("cell", "denied"), [
    ("no", True), ("", True), ("0", True), ("-", True), ("✗", True), ("no pets", True), ("yes", False), ("x", False),
    ("3 May 2024", False), ("ice cream, van sales", False), ("n/a", None), ("blue", None), ("No. 5", None),
])  # fmt: skip
def test_cells_deny(cell, denied):
    assert denied_by(cell, Question.of("was the van sold?")) is denied


def test_words_deny():
    assert denies("Dogs aren't allowed.") and denies("Es ist nicht erlaubt.") and denies("Défense de fumer.")
    for text in (
        "In der Not hilft der Hausmeister.",
        "Nora knows the notary.",
        "Bus No. 5 runs daily.",
        "There is no charge for parking.",
        "No problem.",
    ):
        assert not denies(text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Was the bridge built in 1990?", "The bridge was built in 1985."),
        ("is the treasurer Nora Ode?", "Tim Brand is the treasurer."),
        ("is the fee over 100?", "The fee is 50."),
        ("Is the van red or blue?", "The van is red."),
    ],
)
def test_what_says_something_else_affirms_nothing(read, question, text):
    assert [one.text for one in read(question, Passage("p", "Notes", text)) if one.text == "yes"] == []


def test_an_exception_does_not_deny_what_is_allowed(read):
    text = Passage("p", "Rules", "Smoking is not allowed in the hall, but it is in the yard.")
    assert [one.text for one in read("can we smoke in the yard?", text)] == ["yes"]
    assert [one.text for one in read("can we smoke in the hall?", text)] == ["no"]
