"""Names of old schemas spelt out by a question's words."""

import sqlite3

import pytest

from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.abbreviations import spelt_out
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.words import shortens, tokenise
from helios.sources.registry import Registry

YARD = """
    CREATE TABLE BT_HDR (BT_NO INTEGER PRIMARY KEY, BT_NM TEXT, LGTH_M REAL, BLD_YR INTEGER);
    CREATE TABLE BRTH (BRTH_NO INTEGER PRIMARY KEY, PNTN TEXT, DPTH_M REAL);
    CREATE TABLE STY (STY_NO INTEGER PRIMARY KEY, BT_NO INTEGER REFERENCES BT_HDR (BT_NO),
                      BRTH_NO INTEGER REFERENCES BRTH (BRTH_NO), MR_FEE REAL);
    INSERT INTO BT_HDR VALUES (1, 'Kittiwake', 9.5, 1988), (2, 'Sea Campion', 12.1, 2004), (3, 'Marram', 7.2, 1971);
    INSERT INTO BRTH VALUES (1, 'Pontoon A', 2.5), (2, 'Pontoon B', 3.5);
    INSERT INTO STY VALUES (1, 1, 1, 40.0), (2, 2, 2, 75.5), (3, 1, 2, 60.0);
"""


@pytest.fixture
def yard(tmp_path):
    database = sqlite3.connect(tmp_path / "yard.sqlite")
    database.executescript(YARD)
    database.close()
    (tmp_path / "sources.yaml").write_text("sources:\n  yard:\n    kind: sqlite\n    path: yard.sqlite\n")
    with Registry.open(tmp_path / "sources.yaml") as registry:
        yield registry.source("yard")


@pytest.mark.parametrize(
    ("name", "word"), [("ld", "load"), ("brth", "berth"), ("dep", "depot"), ("surch", "surcharge"), ("bt", "boat")]
)
def test_what_shortens_a_word(name, word):
    assert shortens(name, word)


@pytest.mark.parametrize(
    ("name", "word"), [("st", "status"), ("age", "ages"), ("load", "load"), ("pu", "pickup"), ("b1", "boat")]
)
def test_what_does_not(name, word):
    assert not shortens(name, word)


def test_names_are_spelt_out_by_what_is_asked(yard):
    view = SchemaView.of(yard.descriptor().schema)
    spelt = spelt_out(view, tokenise("Which boats have stayed at a berth with a mooring fee over 50?"))
    assert spelt.tables["BT_HDR"].words == ("boat",)
    assert spelt.tables["BRTH"].words == ("berth",)
    (fee,) = [column for column in spelt.tables["STY"].columns if column.ref.column == "MR_FEE"]
    assert fee.words == ("mooring", "fee"), "by the word that stands beside it"
    assert spelt_out(view, tokenise("Is it raining?")) is view


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many boats are there?", [(3,)]),
        ("What is the average depth of the berths?", [(3.0,)]),
        ("What is the length of the boat Sea Campion?", [(12.1,)]),
        ("What is the highest mooring fee?", [(75.5,)]),
    ],
)
def test_questions_in_words_of_people(yard, question, rows):
    best = SqlGenerator().formulate(question, yard)[0]
    assert list(yard.execute(NativeQuery(Language.SQL, best.query.text)).rows) == rows


def test_words_that_begin_alike_are_others_where_names_are_whole(tmp_path):
    database = sqlite3.connect(tmp_path / "shop.sqlite")
    database.executescript("CREATE TABLE car (car_id INTEGER PRIMARY KEY, model TEXT, age INTEGER);")
    database.close()
    (tmp_path / "sources.yaml").write_text("sources:\n  shop:\n    kind: sqlite\n    path: shop.sqlite\n")
    with Registry.open(tmp_path / "sources.yaml") as registry:
        view = SchemaView.of(registry.source("shop").descriptor().schema)
        assert spelt_out(view, tokenise("Which agents sold cargo and carpets?")) is view
