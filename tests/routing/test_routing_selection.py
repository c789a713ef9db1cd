"""Selection: by words, values and vectors; by a language model; the variants of the evaluation."""

from os.path import commonprefix

import pytest

from helios.executors.base import Language
from helios.routing.catalogue import catalogue, shares
from helios.routing.form import form_scores
from helios.routing.lexical_selection import LexicalDenseSelector, LexicalSelectionSettings, term_weights
from helios.routing.llm_selection import LlmSelector
from helios.routing.phrases import is_statement, phrases, terms
from helios.routing.selection import KbRouting, OracleSelector, SingleBackendSelector
from helios.sources.descriptor import (
    Column,
    Descriptor,
    ForeignKey,
    GraphSchema,
    NodeLabel,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    RelationshipType,
    TableSchema,
)


@pytest.fixture
def selector(likeness):
    return LexicalDenseSelector(likeness)


def test_terms_leave_function_words_out():
    assert [term.text for term in terms("How many purchases did Ole Group make?")] == [
        "purchases",
        "Ole",
        "Group",
        "make",
    ]
    assert [term.name for term in terms("what did Ole Group buy")] == [True, True, False]


def test_phrases_put_quotations_first():
    found = [phrase.text for phrase in phrases("Which films did 'Mira Lund' direct in Norway?")]
    assert found[0] == "Mira Lund" and "Norway" in found
    assert not any("Lund' direct" in phrase for phrase in found)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("Myelin sheaths speed up conduction.", True),
        ("Which country is it?", False),
        ("List all customers", False),
        ("count the films", False),
    ],
)
def test_statements_are_no_questions(text, statement):
    assert is_statement(text) is statement


def test_form_favours_texts_for_claims_and_databases_for_lists():
    claim = form_scores("Zinc shortens the common cold.")
    listing = form_scores("List the names of customers sorted by country")
    assert max(claim, key=claim.__getitem__) is Language.TEXT
    assert max(listing, key=listing.__getitem__) is Language.SQL


def test_words_of_few_sources_weigh_more():
    from helios.routing.lexical_selection import Finding

    wanted = terms("harbour names")
    rare, common = term_weights(wanted, [Finding((1.0, 1.0), ("", "")), Finding((0.0, 1.0), ("", ""))])
    assert rare > common and rare + common == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the total amount of purchases of Ole Group?", "shop"),
        ("who is the director of The Harbour", "films"),
        ("Myelin sheaths play a role in action potential propagation.", "papers"),
    ],
)
def test_each_question_finds_its_source(selector, shop, films, papers, question, expected):
    selection = selector.select(question, [shop, films, papers], k=2)
    assert selection.names[0] == expected and selection.made_by == "lexical"
    assert len(selection.sources) <= 2
    assert selection.sources[0].probability > 0.5
    assert selection.sources[0].reasons


def test_it_abstains_where_nothing_fits(selector, shop, films):
    selection = selector.select("Quel temps fera-t-il demain à Lyon ?", [shop, films])
    assert selection.abstained and "no source explains" in selection.notes[-1]


def test_a_dead_source_is_a_note(selector, shop, films):
    films.dead = True
    selection = selector.select("purchases of Ole Group", [films, shop])
    assert selection.names == ("shop",)
    assert any("films: not considered" in note for note in selection.notes)


def test_a_slow_source_is_left_out(shop, papers):
    selector = LexicalDenseSelector(None, LexicalSelectionSettings(seconds=0.5))
    assert set(selector.look("purchases of Ole Group", [papers, shop])[0]) == {"papers", "shop"}
    papers.pause = 2.0
    selection = selector.select("purchases of Ole Group", [papers, shop])
    assert selection.names == ("shop",)
    assert any("papers" in note and "0.5 s" in note for note in selection.notes)


def test_it_works_without_an_encoder(shop, films):
    assert LexicalDenseSelector(None).select("who directed The Harbour", [shop, films]).names[0] == "films"


def test_variants_of_the_evaluation(selector, shop, films):
    question = "purchases of Ole Group"
    assert OracleSelector({question: ["films", "gone"]}).select(question, [shop, films]).names == ("films",)
    assert OracleSelector({}).select(question, [shop]).abstained
    alone = SingleBackendSelector(selector, Language.SPARQL).select("director of The Harbour", [shop, films])
    assert alone.names == ("films",)
    assert len(KbRouting(selector).select(question, [shop, films], k=3).sources) == 1


def test_the_model_reads_the_whole_catalogue(scripted_llm, model, llm_settings, selector, shop, films, papers):
    scripted_llm.say(scripted_llm.as_json({"sources": ["films", "papers", "films"]}))
    selection = LlmSelector(model, llm_settings, selector).select("Who made it?", [shop, films, papers], k=3)
    assert selection.names == ("films", "papers") and selection.made_by == "language model"
    shown = scripted_llm.requests[0]["messages"][-1]["content"]
    assert "## shop (sqlite, asked in sql)\ncustomer: id, name, country\npurchase: id" in shown
    assert "predicates: director (p1), country of origin (p2)" in shown and "2 documents: short texts" in shown
    assert selection.sources[0].probability > selection.sources[1].probability


def test_the_catalogue_is_the_same_for_every_question(scripted_llm, model, llm_settings, selector, shop, films):
    scripted_llm.say(scripted_llm.as_json({"sources": ["shop"]}))
    asking = LlmSelector(model, llm_settings, selector)
    for question in ("Who made it?", "What did Ole Group buy, and Olle?"):
        asking.select(question, [shop, films])
    first, second = (request["messages"] for request in scripted_llm.requests)
    assert first[0] == second[0]
    shared = commonprefix([first[1]["content"], second[1]["content"]])
    assert "country of origin" in shared and shared.rstrip().splitlines()[-1].startswith("</data ")
    assert "- shop: 'Ole Group' is in customer.name" in second[1]["content"]
    assert "Values that the question names" not in first[1]["content"]


def test_a_source_that_cannot_be_described_is_a_note(scripted_llm, model, llm_settings, selector, shop, films):
    films.dead = True
    scripted_llm.say(scripted_llm.as_json({"sources": ["shop"]}))
    selection = LlmSelector(model, llm_settings, selector).select("purchases of Ole Group", [films, shop])
    assert selection.names == ("shop",) and any("films: not considered" in note for note in selection.notes)


def database(name: str, tables: int, columns: int) -> Descriptor:
    made = tuple(
        TableSchema(f"table_{i}", tuple(Column(f"column_{i}_{j}", "TEXT") for j in range(columns)))
        for i in range(tables)
    )
    return Descriptor(name, "sqlite", Language.SQL, RelationalSchema("sqlite", made))


def test_every_name_is_in_the_catalogue():
    predicates = tuple(RdfTerm(f"http://x/P{i}", f"property {i}", 1) for i in range(600))
    wikidata = Descriptor("wikidata", "rdf", Language.SPARQL, RdfSchema((), (), predicates, 9))
    key = ForeignKey(("author",), "person", ("id",))
    book = TableSchema("book", (Column("title", ""), Column("author", "")), (key,))
    library = Descriptor("library", "sqlite", Language.SQL, RelationalSchema("sqlite", (book,)), "Books")
    graph = GraphSchema(
        (NodeLabel("Person", (Column("name", ""),), 1),),
        (RelationshipType("KNOWS", "Person", "Person", (Column("since", ""),), 1),),
    )  # fmt: skip
    people = Descriptor("people", "bolt", Language.CYPHER, graph)
    shown = catalogue([wikidata, library, people, database("d", 30, 20)], room=100_000)
    assert all(f"property {i} (P{i})" in shown for i in range(600))
    assert "## library (sqlite, asked in sql): Books\nbook: title, author -> person" in shown
    assert "(Person): name\n(Person)-[KNOWS]->(Person): since" in shown and "column_29_19" in shown
    assert "more" not in shown


def test_large_sources_give_way_to_small_ones():
    shown = catalogue([database("large", 60, 30), database("small", 3, 5)], room=6_000)
    assert len(shown) < 7_500 and "column_2_4" in shown.partition("## small")[2]
    large = shown.partition("## small")[0]
    assert all(f"table_{i}: column_{i}_0" in large for i in range(60)) and "more" in large
    tiny = catalogue([database("large", 600, 30)], room=2_000)
    assert len(tiny) < 4_000 and "more" in tiny.splitlines()[-1]


def test_a_room_is_shared():
    assert shares([10, 100, 30], 90) == [10, 50, 30] and shares([1, 2], 100) == [1, 2] and shares([], 5) == []


@pytest.mark.parametrize(
    "reply", [{"sources": ["nowhere"]}, {"sources": ["shop"] * 4}, {"names": []}], ids=["unknown", "too many", "shape"]
)
def test_replies_that_do_not_fit_degrade_to_words(scripted_llm, model, llm_settings, selector, shop, films, reply):
    scripted_llm.say(scripted_llm.as_json(reply))
    selection = LlmSelector(model, llm_settings, selector).select("purchases of Ole Group", [shop, films], k=2)
    assert selection.names[0] == "shop" and selection.degraded and selection.made_by == "lexical"
    assert len(scripted_llm.requests) == 2  # asked once more with the error
    assert any("chosen by words" in note for note in selection.notes)


def test_a_model_that_is_down_or_late_degrades(scripted_llm, model, llm_settings, selector, shop):
    scripted_llm.say(scripted_llm.as_json({"sources": ["shop"]}, pause=7.0))
    selection = LlmSelector(model, llm_settings, selector).select("purchases of Ole Group", [shop])
    assert selection.degraded and selection.names == ("shop",)


def test_the_model_may_name_none(scripted_llm, model, llm_settings, selector, shop):
    scripted_llm.say(scripted_llm.as_json({"sources": []}))
    selection = LlmSelector(model, llm_settings, selector).select("Who won?", [shop])
    assert selection.abstained and not selection.degraded
