"""A context in the default engine: the help desk's question of two customers, and nothing where none is given."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.augment.augmenter import Augmenter, open_augmenter
from helios.augment.context import Attribute, Context, ContextColumn
from helios.augment.encoding import ColumnWeights
from helios.augment.helpdesk import ANSWERS, ASKED, question_of
from helios.augment.model import ROLE
from helios.cli import build_app
from helios.engine import Engine
from helios.errors import ModelError
from helios.evidence_json import evidence_schema
from helios.models.card import ModelCard, write_card
from helios.retrieval.context import with_own_row
from helios.sources.registry import Registry
from helios.types import Evidence

OFF = "It does not switch on any more. What can I do?"
LAMP = Context.from_columns({"products.name": ["Bicycle lamp L7"], "customers.name": ["Ben Okoro"]})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `helios demo augment` makes."""
    folder = tmp_path_factory.mktemp("desk")
    result = CliRunner().invoke(build_app(), ["demo", "augment", "--out", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    asked = json.loads(result.output)["asked"]
    assert {one["ticket"]: one["found"] for one in asked} == ANSWERS
    assert any(one["without_context"] != one["expected"] for one in asked) and all(one["through"] for one in asked)
    return folder


@pytest.fixture(scope="module")
def engine(desk: Path) -> Iterator[Engine]:
    with Engine.open(desk / "index") as engine:
        yield engine


@pytest.fixture(scope="module")
def augmenter(desk: Path) -> Iterator[Augmenter]:
    with Registry.open(desk / "helios-sources.yaml") as registry:
        yield open_augmenter(registry, "helpdesk")


def best(evidence: Evidence) -> str:
    passage = evidence.edges[0].passage
    assert passage is not None
    return passage.passage_id


def without_times(evidence: Evidence) -> dict[str, object]:
    return {key: value for key, value in evidence.to_dict().items() if key != "timings_ms"}


@pytest.mark.parametrize("ticket", [ticket for pair in ASKED for ticket in pair])
def test_the_same_words_of_two_customers_find_two_articles(
    engine: Engine, augmenter: Augmenter, desk: Path, ticket: int
) -> None:
    title, _ = question_of(desk / "helios-sources.yaml", ticket)
    evidence = engine.search(title, k=3, context=augmenter.of_row("tickets", ticket))
    assert best(evidence) == ANSWERS[ticket]
    assert "Written after" not in json.dumps(evidence.to_dict())


def test_the_evidence_says_through_what_it_was_found(engine: Engine) -> None:
    evidence = engine.search(OFF, k=3, context=LAMP, explain=True)
    told = evidence.edges[0].context[0]
    assert (told.column, told.text) == ("products.name", "Bicycle lamp L7") and told.gain > 0 and told.word
    assert [column.column for column in evidence.context][0] == "products.name"
    assert sum(column.weight for column in evidence.context) == pytest.approx(1.0)
    document = evidence.to_dict()
    schema = evidence_schema()
    for name, found in (("context_weight", document["context"]), ("context_match", document["edges"][0]["context"])):
        assert found and all(set(one) == set(schema["$defs"][name]["properties"]) for one in found)


def test_without_a_context_nothing_is_done(engine: Engine) -> None:
    plain, empty = engine.search(OFF, k=5), engine.search(OFF, k=5, context=Context())
    assert without_times(plain) == without_times(empty)
    assert set(plain.timings_ms) == set(empty.timings_ms) and "context" not in plain.timings_ms
    assert "context" not in plain.to_dict() and "context" not in plain.to_dict()["edges"][0]
    assert without_times(engine.search(OFF, k=5, context=LAMP, context_weights=ColumnWeights(share=1.0))) == (
        without_times(plain)
    )


def test_the_order_of_attributes_changes_nothing(engine: Engine) -> None:
    names = ["Bicycle lamp L7", "Front light for a bicycle", "Ben Okoro", "Bristol"]
    found = [
        engine.search(OFF, k=5, context=Context.from_columns({"a.b": order, "c.d": ["open"]}))
        for order in (names, names[::-1])
    ]
    assert [edge.passage for edge in found[0].edges] == [edge.passage for edge in found[1].edges]
    assert [edge.score for edge in found[0].edges] == pytest.approx([edge.score for edge in found[1].edges], abs=1e-4)


def test_columns_of_no_weight_are_left_out(engine: Engine) -> None:
    weights = ColumnWeights(share=0.5, weights={"customers.name": 1.0})
    evidence = engine.search(OFF, k=5, context=LAMP, context_weights=weights)
    assert [column.column for column in evidence.context] == ["customers.name"]
    assert all(match.column == "customers.name" for edge in evidence.edges for match in edge.context)


def test_a_trained_augmenter_makes_the_questions_vector(engine: Engine, desk: Path, tmp_path: Path) -> None:
    def written(name: str, expansion: str | None = None) -> Path:
        values = {"share": 0.2, "weights": {"products.name": 1.0}, "expansion": expansion}
        encoder = engine.models.attribute_vectors(engine.config).encoder.name
        card = ModelCard(
            name="a", role=ROLE, summary="a", base=encoder, data=(), settings={}, scores={},
            needs={"encoder": encoder}, values=values,
        )  # fmt: skip
        (tmp_path / name).mkdir()
        write_card(tmp_path / name, card, weights=[])
        return tmp_path / name

    kettle = Context.from_columns({"products.name": ["Kettle K2"], "customers.name": ["Ben Okoro"]})
    by_setting = f"search.augmenter={written('set')}"
    with Engine.open(desk / "index", overrides=[by_setting]) as trained:
        found = trained.search(OFF, k=5, context=kettle)
        assert best(found).startswith("k2")
        assert without_times(trained.search(OFF, k=5)) == without_times(engine.search(OFF, k=5))
        model = trained.models.augmenter(trained.config)
    assert without_times(engine.search(OFF, k=5, context=kettle, augmenter=model)) == without_times(found)
    refused = f"search.augmenter={written('words', 'row')}"
    with Engine.open(desk / "index", overrides=[refused]) as words, pytest.raises(ModelError, match="expanded words"):
        words.search(OFF, context=kettle)
    with (
        Engine.open(desk / "index", overrides=["search.augmenter=nowhere"]) as none,
        pytest.raises(ModelError, match="nowhere"),
    ):
        none.search(OFF, context=kettle)


def test_the_deadline_leaves_the_context_out_and_says_so(engine: Engine) -> None:
    evidence = engine.search(OFF, k=3, context=LAMP, seconds=1e-9)
    assert any("context" in note for note in evidence.notes) and not evidence.context


def test_search_and_ask_take_a_row(desk: Path) -> None:
    where = ["--context", "tickets:22", "--source", "helpdesk", "--sources", str(desk / "helios-sources.yaml")]
    index = ["--index", str(desk / "index")]
    result = CliRunner().invoke(build_app(), ["search", OFF, *index, "-k", "1", *where])
    assert result.exit_code == 0, result.output
    assert "Bicycle lamp L7: it does not switch on" in result.output and "through Bicycle lamp L7" in result.output
    result = CliRunner().invoke(build_app(), ["ask", OFF, *index, *where, "--json"])
    assert result.exit_code == 0, result.output
    assert "l7-off" in result.output
    result = CliRunner().invoke(build_app(), ["search", OFF, *index, "--source", "helpdesk"])
    assert result.exit_code == 2 and "--context" in result.output
    result = CliRunner().invoke(build_app(), ["search", OFF, *index, "--context", "tickets:22"])
    assert result.exit_code == 2 and "--source" in result.output


def column(name: str, *texts: str, path: tuple[str, ...] = ()) -> ContextColumn:
    return ContextColumn(name, path, tuple(Attribute(name, text) for text in texts), len(texts))


TOLD = "I charged the bicycle lamp by its USB cable for a whole night, and its light stays dark."
OWN = Context(
    (column("tickets.body", TOLD), column("products.name", "Kettle K2", path=("customer", "owned"))), row="tickets:31"
)


def test_the_rows_own_text_is_read_with_the_question(engine: Engine):
    """It says which product is meant, so what else is owned is left out; the evidence has the question alone."""
    evidence = engine.search(OFF, context=OWN)
    assert best(evidence) == ANSWERS[22] and evidence.question == OFF
    words, rest, _ = with_own_row(OFF, OWN, ColumnWeights())
    assert words == f"{OFF}\n{TOLD}" and not rest


def test_what_keys_lead_to_counts_where_the_row_says_little(engine: Engine):
    short = replace(OWN, columns=(column("tickets.body", "Please help."), *OWN.columns[1:]))
    assert best(engine.search(OFF, context=short)) == ANSWERS[21]
    words, rest, _ = with_own_row(OFF, short, ColumnWeights())
    assert words == f"{OFF}\nPlease help." and [each.name for each in rest.columns] == ["products.name"]


def test_learned_weights_keep_their_part_of_the_share():
    weights = ColumnWeights(share=0.6, weights={"tickets.body": 3.0, "products.name": 1.0})
    _, rest, left = with_own_row(OFF, OWN, weights)
    assert [each.name for each in rest.columns] == ["products.name"] and left.share == pytest.approx(0.9)
    values = Context.from_columns({"tickets.body": [TOLD]})
    assert with_own_row(OFF, values, weights) == (OFF, values, weights)
    assert with_own_row(TOLD, OWN, weights)[0] == TOLD  # the question is the row's text already
