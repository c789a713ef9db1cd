"""Spider's layout as a folder of CSV files with questions."""

import gzip
import json
import sqlite3
from contextlib import closing

from helios.evaluation.folders import read_folder_questions
from training.spider_tables import questions, write_tables


def test_tables_and_questions(tmp_path):
    database = tmp_path / "huts.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE hut (name TEXT, beds INTEGER)")
        connection.execute("INSERT INTO hut VALUES ('Alder', 12), ('Birch, old', NULL)")
        connection.commit()
    assert write_tables(database, tmp_path / "files" / "huts") == 1
    written = (tmp_path / "files" / "huts" / "hut.csv").read_text().splitlines()
    assert written == ["name,beds", "Alder,12", '"Birch, old",']
    records = [
        {"id": "1", "question": "How many huts?", "query": "SELECT count(*) FROM hut", "answers": [[2]]},
        {"id": "2", "question": "Names of both?", "query": "SELECT a FROM x JOIN y", "answers": [["Alder"], ["Birch"]]},
        {"id": "3", "question": "Two columns?", "query": "SELECT a, b FROM x", "answers": [["Alder", 1]]},
    ]
    with gzip.open(tmp_path / "dev.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(q) + "\n" for q in questions(tmp_path / "dev.jsonl.gz"))
    )
    one, other = read_folder_questions(tmp_path / "questions.jsonl")
    assert (one.kind, one.items) == ("one table", (("2",),))
    assert (other.kind, other.items) == ("several", (("Alder",), ("Birch",)))
