"""A small site of posts and a small shop, as the files of every public layout."""

import csv
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from helios.augment.encoding import AttributeVectors, FloatArray, unit

TOPICS = ["brake pads", "qubit states", "oak trees", "river maps", "violin strings", "tea leaves"]


def site_tables() -> dict[str, list[dict[str, object]]]:
    """Ten users ask two questions each; every question has a good and a bad answer and a comment."""
    posts: list[dict[str, object]] = []
    comments: list[dict[str, object]] = []
    votes: list[dict[str, object]] = []
    for number in range(20):
        user, topic, question = number % 10, TOPICS[number % 6], 100 + 10 * number
        day = f"2018-{1 + number // 2:02d}-{10 + number % 2:02d}"
        posts += [
            {"Id": question, "PostTypeId": 1, "ParentId": None, "CreationDate": f"{day}T10:00:00.000", "Score": 1,
             "Title": f"Which {topic} for case {number}?", "Body": f"<p>I need {topic} &amp; more, case {number}.</p>",
             "OwnerUserId": user, "Tags": f"<{topic.replace(' ', '-')}><help>", "AcceptedAnswerId": question + 1},
            {"Id": question + 1, "PostTypeId": 2, "ParentId": question, "CreationDate": f"{day}T12:00:00.000",
             "Score": 2, "Title": None, "Body": f"<p>Take these {topic}: number {number}.</p>",
             "OwnerUserId": (user + 3) % 10, "Tags": None, "AcceptedAnswerId": None},
            {"Id": question + 2, "PostTypeId": 2, "ParentId": question, "CreationDate": f"{day}T13:00:00.000",
             "Score": -1, "Title": None, "Body": f"<p>No idea about {number}.</p>", "OwnerUserId": (user + 4) % 10,
             "Tags": None, "AcceptedAnswerId": None},
        ]  # fmt: skip
        comments.append({"Id": number, "PostId": question, "UserId": user, "CreationDate": f"{day}T11:00:00.000",
                         "Text": f"late remark {number}"})  # fmt: skip
        votes.append({"Id": number, "PostId": question + 1, "VoteTypeId": 1, "CreationDate": f"{day}T00:00:00.000",
                      "UserId": None})  # fmt: skip
    users = [
        {"Id": n, "CreationDate": "2017-01-01T00:00:00.000", "AboutMe": f"<p>I am user {n}.</p>"} for n in range(10)
    ]
    return {"posts": posts, "comments": comments, "votes": votes, "users": users}


def write_dump(folder: Path) -> Path:
    """The XML of a Stack Exchange dump."""
    folder.mkdir()
    for name, rows in site_tables().items():
        lines = [
            "<row "
            + " ".join(f"{key}={quoteattr(str(value))}" for key, value in row.items() if value is not None)
            + " />"
            for row in rows
        ]
        text = f"<?xml version='1.0' encoding='utf-8'?>\n<{name}>\n" + "\n".join(lines) + f"\n</{name}>\n"
        (folder / f"{name.capitalize()}.xml").write_text(text, encoding="utf-8")
    return folder


def write_parquet(folder: Path) -> Path:
    """RelBench's tables: no scores and no accepted answers, ids with gaps as decimals."""
    folder.mkdir()
    for name, rows in site_tables().items():
        kept = [{key: value for key, value in row.items() if key not in ("Score", "AcceptedAnswerId")} for row in rows]
        table = pa.Table.from_pylist(kept)
        for column in ("ParentId", "OwnerUserId"):
            if column in table.column_names:
                at = table.column_names.index(column)
                table = table.set_column(at, column, table[column].cast(pa.float64()))
        parquet.write_table(table, folder / f"{name}.parquet")
    return folder


def write_sqlite(file: Path) -> Path:
    """A database with snake-case names and tags in tables of their own."""
    tables = site_tables()
    names = {"Id": "id", "PostTypeId": "post_type_id", "ParentId": "parent_id", "CreationDate": "creation_date",
             "Score": "score", "Title": "title", "Body": "body", "OwnerUserId": "owner_user_id",
             "AcceptedAnswerId": "accepted_answer_id", "PostId": "post_id", "UserId": "user_id", "Text": "text",
             "VoteTypeId": "vote_type_id", "AboutMe": "about_me"}  # fmt: skip
    with closing(sqlite3.connect(file)) as connection:
        for table, rows in tables.items():
            columns = [key for key in rows[0] if key in names]
            connection.execute(f"CREATE TABLE {table} ({', '.join(names[key] for key in columns)})")
            marks = ", ".join("?" for _ in columns)
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})", [[row[key] for key in columns] for row in rows]
            )
        connection.execute("CREATE TABLE tags (id, tag_name)")
        connection.execute("CREATE TABLE post_tags (post_id, tag_id)")
        labels = [topic.replace(" ", "-") for topic in TOPICS] + ["help"]
        connection.executemany("INSERT INTO tags VALUES (?, ?)", list(enumerate(labels)))
        for row in tables["posts"]:
            for label in str(row["Tags"] or "").strip("<>").split("><"):
                if label:
                    connection.execute("INSERT INTO post_tags VALUES (?, ?)", (row["Id"], labels.index(label)))
        connection.commit()
    return file


def write_amazon(folder: Path) -> Path:
    """Products, and reviews of 2013 to 2015 by thirty customers."""
    folder.mkdir()
    products = [
        {"product_id": f"B{n}", "title": f"Title {n}", "description": f"A book about {topic}, part {n}.",
         "category": ["Books", topic]}
        for n, topic in enumerate(TOPICS * 2)
    ]  # fmt: skip
    reviews = [
        {"customer_id": f"C{c}", "product_id": f"B{(c + step) % 12}",
         "review_time": f"{2013 + c % 3}-0{1 + step}-01", "review_text": f"I liked {TOPICS[(c + step) % 6]} {step}"}
        for c in range(30) for step in range(4)
    ]  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(products), folder / "product.parquet")
    parquet.write_table(pa.Table.from_pylist(reviews), folder / "review.parquet")
    return folder


def write_hm(folder: Path) -> Path:
    """Articles, customers and transactions as CSV."""
    folder.mkdir()
    facts = ["product_type_name", "product_group_name", "perceived_colour_master_name", "department_name", "index_name",
             "index_group_name", "section_name", "garment_group_name"]  # fmt: skip
    articles = [{"article_id": 100 + n, "prod_name": f"Shirt {n}", "detail_desc": f"A shirt of {TOPICS[n % 6]}."} |
                {fact: f"{fact} {n % 3}" for fact in facts} for n in range(12)]  # fmt: skip
    customers = [{"customer_id": f"c{n}", "age": 20 + n, "fashion_news_frequency": "NONE"} for n in range(30)]
    months = ["02", "08", "09"]
    bought = [
        {"t_dat": f"2020-{months[c % 3]}-0{1 + step}", "customer_id": f"c{c}", "article_id": 100 + (c + step) % 12}
        for c in range(30) for step in range(4)
    ]  # fmt: skip
    for name, rows in (("articles", articles), ("customers", customers), ("transactions_train", bought)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


@pytest.fixture(params=["dump", "parquet", "sqlite"])
def site(request, tmp_path: Path) -> Path:
    """The same site in each layout."""
    if request.param == "sqlite":
        return write_sqlite(tmp_path / "site.sqlite")
    return {"dump": write_dump, "parquet": write_parquet}[request.param](tmp_path / "site")


@pytest.fixture
def site_file(tmp_path: Path) -> Path:
    """The site as a SQLite file."""
    return write_sqlite(tmp_path / "site.sqlite")


@pytest.fixture
def amazon(tmp_path: Path) -> Path:
    return write_amazon(tmp_path / "amazon")


@pytest.fixture
def shirts(tmp_path: Path) -> Path:
    return write_hm(tmp_path / "hm")


class Letters:
    """An encoder that counts letters."""

    name = "letters"
    dimension = 26

    def encode(self, texts: Sequence[str]) -> FloatArray:
        counts = [[text.count(chr(97 + letter)) for letter in range(26)] for text in texts]
        return unit(np.array(counts, np.float32).reshape(-1, 26) + np.float32(0.01))


@pytest.fixture
def vectors() -> AttributeVectors:
    return AttributeVectors(Letters())
