"""Questions by templates: what passages say, how tables are said, and that the gold edges are right."""

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.corpus import CorpusStore, CorpusWriter
from helios.evaluation.questions import read_questions
from helios.types import Hyperlink, Passage, Table
from training.cli import app
from training.facts import read_facts
from training.synthetic import SyntheticQuestion, synthesise
from training.wording import asked, condition, extreme, noun_of_header, place_of

CITIES = ["Rovdal", "Storvik", "Tangen", "Ulvsund", "Vestby", "Askim", "Bryne", "Drobak"]
FIRST = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gro", "Hal"]


def league() -> tuple[list[Table], list[Passage]]:
    tables, passages = [], []
    for number in range(3):
        rows, links = [], []
        for row, city in enumerate(CITIES):
            coach, club = f"{FIRST[row]} Almqvist{number}", f"{city} {number} FC"
            passages += [
                Passage(
                    f"club{number}-{row}",
                    club,
                    f"{club} is a Norwegian football club based in Oslo{number}{row} . "
                    f"It was founded in {1900 + row + 10 * number} . "
                    f"It has won {row + 2} national championships since the war .",
                ),
                Passage(
                    f"coach{number}-{row}",
                    coach,
                    f"{coach} ( born {row + 1} May {1960 + row} ) is a Norwegian football manager . "
                    f"He played as a goalkeeper for Viking{number}{row} . ",
                ),
            ]
            rows.append((club, coach, str(9000 + 350 * row), str(row + 1)))
            links += [Hyperlink(row, 0, f"club{number}-{row}"), Hyperlink(row, 1, f"coach{number}-{row}")]
        header = ("Team", "Head coach", "Capacity", "Rank")
        tables.append(
            Table(f"t{number}", f"200{number} Norwegian League", header, tuple(rows), hyperlinks=tuple(links))
        )
    return tables, passages


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    folder = tmp_path_factory.mktemp("league")
    tables, passages = league()
    with CorpusWriter(folder) as writer:
        for record in (*tables, *passages):
            writer.add(record)
    return CorpusStore.open(folder)


@pytest.fixture(scope="module")
def questions(store: CorpusStore) -> list[SyntheticQuestion]:
    return list(synthesise(store, ["t0", "t1", "absent"], count=120, seed=4))


def test_a_passage_is_read() -> None:
    facts = read_facts(
        Passage(
            "p",
            "Nagacorp FC",
            "NagaWorld FC , founded in 2001 ( as N ) , is a Cambodian football club based in Phnom Penh , Cambodia . "
            "The club plays in the top division of Cambodian football . Its home stadium is the Olympic Stadium .",
        )
    )
    assert facts.noun == "Cambodian football club"
    assert not facts.is_person
    assert facts.clauses == (
        "based in Phnom Penh , Cambodia",
        "that plays in the top division of Cambodian football",
        "whose home stadium is the Olympic Stadium",
    )
    answers = {fact.forms[0]: fact.answer for fact in facts.facts}
    assert answers["When was {np} founded ?"] == "2001"
    assert answers["Where is {np} based ?"] == "Phnom Penh , Cambodia"
    assert answers["What is the home venue of {np} ?"] == "Olympic Stadium"


def test_a_person_is_read_and_never_named() -> None:
    text = (
        "Ann Bo ( born 3 May 1960 in Oslo ) is an American singer . She won two awards for her debut . "
        "She married Bo Ann in Rome ."
    )
    facts = read_facts(Passage("p", "Ann Bo", text))
    assert facts.is_person
    assert "who won two awards for her debut" in facts.clauses
    assert "born on 3 May 1960" in facts.clauses
    assert all(fact.answer in text for fact in facts.facts)


@pytest.mark.parametrize("text", ["", "Short .", "( ( ) [ ] nothing here", "A" * 400, "ABC " * 300])
def test_odd_texts_give_nothing_and_take_no_time(text: str) -> None:
    assert read_facts(Passage("p", "T", text)).clauses == ()


def test_headers_cells_and_titles_are_said() -> None:
    chance = random.Random(1)
    assert noun_of_header("Head coach ( s )") == "head coach"
    assert noun_of_header("Teams") == "team"
    assert noun_of_header("Year") == noun_of_header("Notes") == ""
    assert condition("Year", "1998", chance).split()[-1] == "1998"
    assert condition("Directed by", "Ann Bo", chance) == "directed by Ann Bo"
    assert asked("Goals", "12", "the player born in Oslo", chance).startswith("How many goals")
    assert asked("Transferred from", "Oslo", "the player", chance) == ""
    assert place_of("2013 Cambodian League", "", random.Random(0)).endswith("the 2013 Cambodian League")
    assert place_of("List of airports in Norway", "", chance).endswith("airports in Norway")


def test_extremes_pick_the_right_row() -> None:
    cells = ["1,200", "900", "15,000", "7", "44 %"]
    for seed in range(20):
        picked = extreme("Capacity", cells, random.Random(seed))
        assert picked is not None
        row, phrase = picked
        expected = {"with the largest": 2, "with the second largest": 0, "with the smallest": 3}
        assert expected.get(phrase.removesuffix(" capacity"), row) == row
    assert extreme("Rank", ["1", "2", "3", "4"], random.Random(0)) is None
    assert extreme("Date", ["3 May 1960", "4 May 1960", "1 June 1959", "1961"], random.Random(3)) is not None
    assert extreme("Goals", ["5", "5", "5", "5"], random.Random(0)) is None


def test_gold_edges_are_links_of_the_table_and_hold_the_answer(
    store: CorpusStore, questions: list[SyntheticQuestion]
) -> None:
    assert len(questions) == 120
    assert {made.kind for made in questions} == {"attribute", "fact", "bridge", "extreme"}
    for made in questions:
        number = store.tables.find(made.table_id)
        assert number is not None
        table = store.tables[number]
        assert Hyperlink(made.row, made.column, made.passage_id) in table.hyperlinks
        found = store.passages.find(made.passage_id)
        assert found is not None
        passage = store.passages[found]
        assert made.answer in (table.rows[made.row] if made.kind == "attribute" else passage.text)
        assert passage.title not in made.question
        assert not re.search(rf"\b{re.escape(made.answer)}\b", made.question)
        assert made.question[0].isupper() and made.question.endswith("?")


def test_questions_are_different_and_the_same_for_a_seed(
    store: CorpusStore, questions: list[SyntheticQuestion]
) -> None:
    assert len({made.question.lower() for made in questions}) == len(questions)
    assert list(synthesise(store, ["t1", "t0"], count=120, seed=4)) == questions
    assert list(synthesise(store, ["t0", "t1"], count=120, seed=5)) != questions
    assert {made.table_id for made in questions} == {"t0", "t1"}


def test_the_command_writes_a_question_file(store: CorpusStore, tmp_path: Path) -> None:
    splits, out = tmp_path / "splits.json", tmp_path / "synthetic.jsonl.gz"
    splits.write_text(json.dumps({"train": ["t0", "t1"], "dev": ["t2"]}))
    command = ["questions", str(store.directory), "--splits", str(splits), "--out", str(out), "--count", "30"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    read = read_questions(out)
    assert len(read) == 30
    assert {question.table_id for question in read} <= {"t0", "t1"}
    assert all(len(question.gold_edges) == 1 for question in read)
    first = out.read_bytes()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert out.read_bytes() == first
