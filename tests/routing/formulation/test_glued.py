"""Names without a border, codes for states, and the difference of two numbers, in a small database of an old system."""

import sqlite3
from contextlib import contextmanager

import pytest

from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.abbreviations import spelt_out
from helios.routing.formulation.differences import halves
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.glued import of_two, unglued, unglued_short
from helios.routing.formulation.linking import link_codes, link_schema
from helios.routing.formulation.plan import SetOperation
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.words import tokenise
from helios.sources.registry import Registry

PARCELS = """
    CREATE TABLE CLNT (CLNNO INTEGER PRIMARY KEY, CLNNM TEXT, CLNTEL TEXT, TRDFLG TEXT);
    CREATE TABLE DRVR (DRVNO INTEGER PRIMARY KEY, FST_NM TEXT, LST_NM TEXT, BSSNO INTEGER REFERENCES DRVR (DRVNO));
    CREATE TABLE PRCL (PRCNO INTEGER PRIMARY KEY, CLNNO INTEGER REFERENCES CLNT (CLNNO),
                       DRVNO INTEGER REFERENCES DRVR (DRVNO), SNTDT TEXT, FR_TWN TEXT, TO_TWN TEXT, PRCST TEXT,
                       QTYOH INTEGER, UPRC REAL, WGTKG REAL);
    INSERT INTO CLNT VALUES
        (1, 'Osk Timber', '0550 1', 'Y'), (2, 'Ivy Lane', '0550 2', 'N'),
        (3, 'Marsh Foods', NULL, 'Y');
    INSERT INTO DRVR VALUES (1, 'Ada', 'Finn', NULL), (2, 'Rolf', 'Berg', 1), (3, 'Una', 'Holt', 1);
    INSERT INTO PRCL VALUES
        (1, 1, 1, '2024-03-02', 'Skerby', 'Orm', 'DLVD', 1, 4.5, 2.0),
        (2, 1, 2, '2024-03-09', 'Orm', 'Skerby', 'DLVD', 2, 9.0, 7.5),
        (3, 2, 2, '2024-03-21', 'Orm', 'Skerby', 'CANC', 1, 6.0, 1.0),
        (4, 2, 1, '2024-04-03', 'Orm', 'Lund', 'PEND', 1, 5.0, 3.5);
"""


SURE = 0.65


@contextmanager
def _opened(folder, script):
    database = sqlite3.connect(folder / "small.sqlite")
    database.executescript(script)
    database.close()
    (folder / "sources.yaml").write_text("sources:\n  small:\n    kind: sqlite\n    path: small.sqlite\n")
    with Registry.open(folder / "sources.yaml") as registry:
        yield registry.source("small")


@pytest.fixture
def parcels(tmp_path):
    with _opened(tmp_path, PARCELS) as source:
        yield source


@pytest.mark.parametrize(
    ("name", "own", "words"),
    [
        ("CUSNM", ("customer",), ("customer", "name")),
        ("PRTDSC", ("part",), ("part", "description")),
        ("JOBST", ("rjob",), ("job", "status")),
        ("OUTDT", ("rental",), ("out", "date")),
        ("PDFLG", ("invoice",), ("paid", "flag")),
        ("LSVCDT", ("bike",), ("last", "service", "date")),
        ("UPRC", ("part",), ("unit", "price")),
        ("UCOST", ("part",), ("unit", "cost")),
        ("QTYOH", ("part",), ("quantity", "on", "hand")),
        ("start", ("visit",), None),
        ("amount", ("visit",), None),
        ("hotel", ("visit",), None),
        ("cust_no", ("visit",), None),
    ],
)
def test_short_names_are_taken_apart(name, own, words):
    assert unglued_short(name, own, set(own), numeric=False, key=False) == words


def test_what_a_tail_means_is_told_by_the_type_and_by_keys():
    assert unglued_short("DAYRT", ("bike",), (), numeric=True, key=False) == ("day", "rate")
    assert unglued_short("DAYRT", ("bike",), (), numeric=False, key=False) is None
    assert unglued_short("BOSSNO", ("employee",), (), numeric=True, key=True) == ("boss", "number")
    assert unglued_short("PIANO", ("room",), (), numeric=False, key=False) is None
    for whole in ("READY", "PORT", "ALERT", "SHORT", "START", "STUDY", "REPORT"):
        assert unglued_short(whole, ("ship",), (), numeric=True, key=False) is None


def test_tables_of_two_others_and_names_of_whole_words():
    assert of_two("JOBPRT", {"job", "part", "jobprt"}) == ("job", "part")
    for name, others in [
        ("CREW", {"job", "part"}),
        ("SHIPMENT", {"ship", "payment"}),
        ("BOOKING", {"book", "reading"}),
    ]:
        assert of_two(name, others | {name.lower()}) is None
    assert unglued("petid", ("pet",), {"pet"}, key=True) == ("pet", "id")
    assert unglued("casino", ("room",), {"room"}, key=False) == ("casino",)


def test_codes_stand_for_words(parcels):
    view = SchemaView.of(parcels.descriptor().schema)

    def meant(question: str) -> list[object]:
        tokens = tokenise(question)
        spelt = spelt_out(view, tokens)
        return [link.value for link in link_codes(tokens, spelt, link_schema(tokens, spelt))]

    assert meant("How many parcels were cancelled?") == ["CANC"]
    assert meant("Which parcels are pending?") == ["PEND"]
    assert meant("Which parcels were delivered?") == ["DLVD"]
    for other in ("Which canals are there?", "How many pendants are parcels?", "Which clients have cancelled?"):
        assert meant(other) == []


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many parcels were cancelled?", [(1,)]),
        ("What is the phone number of Ivy Lane?", [("0550 2",)]),
        ("How many parcels went to Skerby?", [(2,)]),
        ("How many parcels went from Skerby?", [(1,)]),
        ("Which clients have never sent a parcel?", [("Marsh Foods",)]),
        ("How many more parcels were sent in March 2024 than in April 2024?", [(2,)]),
        ("How many fewer parcels went to Orm than to Skerby?", [(1,)]),
        ("What is the difference between the highest and the lowest unit price?", [(4.5,)]),
        ("What is the difference between the highest and lowest unit price of parcels to Skerby?", [(3.0,)]),
    ],
)
def test_questions(parcels, question, rows):
    best = SqlGenerator().formulate(question, parcels)[0]
    assert list(parcels.execute(NativeQuery(Language.SQL, best.query.text)).rows) == rows


@pytest.mark.parametrize(
    "question",
    [
        "How many parcels weigh more than 3?",
        "What is the difference between a parcel and a letter?",
        "How many more parcels were sent?",
        "Is there a difference between March and April?",
    ],
)
def test_what_sets_no_two_numbers_apart(parcels, question):
    for candidate in SqlGenerator().formulate(question, parcels):
        assert ") - (" not in candidate.query.text


GOODS = """
    CREATE TABLE goods (goods_id INTEGER PRIMARY KEY, goods_name TEXT, class TEXT, price REAL, sold_to TEXT,
        added_on TEXT);
    INSERT INTO goods VALUES (1, 'Lamp', 'HIGH', 30, 'Spain', '2023-02-01'),
        (2, 'Desk', 'LATE', 80, 'Italy', '2023-05-01'),
        (3, 'Rug', 'SMALL', 45, 'Spain', '2024-01-09'), (4, 'Vase', 'HIGH', 12, 'Italy', '2024-03-02');
"""


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Which goods have the highest price?", [("Desk",)]),
        ("What is the smallest price of goods?", [(12.0,)]),
        ("How much more does the Desk cost than the Lamp?", [(50.0,)]),
        ("How many more goods were sold to Spain than to Italy?", [(0,)]),
    ],
)
def test_codes_are_no_degrees(tmp_path, question, rows):
    with _opened(tmp_path, GOODS) as source:
        best = SqlGenerator().formulate(question, source)[0]
        assert list(source.execute(best.query).rows) == rows


@pytest.mark.parametrize(
    "question",
    [
        "What is the difference in class between Lamp and Desk?",
        "What is the difference between the oldest and the newest goods?",
        "How much more were goods sold to Spain than to Italy?",
        "How many more goods were sold to Spain than to Italy or Norway?",
        "How many more goods were added in 2023 than in any month of 2024?",
        "How many more goods weren't sold to Spain than to Italy?",
    ],
)
def test_what_is_no_number_is_not_taken_away(tmp_path, question):
    with _opened(tmp_path, GOODS) as source:
        for candidate in SqlGenerator().formulate(question, source):
            assert ") - (" not in candidate.query.text and candidate.confidence < SURE


def test_halves_need_something_to_put_in_place():
    def said(words):
        raise AssertionError("nothing is compared")

    assert halves("Which parcels are heavier than 3 kg?", said) is None
    operation, one, other = halves("What is the difference in price between Osk and Ivy?", said)
    assert (operation, one, other) == (
        SetOperation.APART, "What is the price of Osk?", "What is the price of Ivy?",
    )  # fmt: skip
    _, one, other = halves("What's the difference between the average fee for adults and for children?", said)
    assert (one, other) == ("What is the average fee for adults?", "What is the average fee for children?")
