"""Any Answer and Best Answer over Stack Exchange: a site's own dump, RelBench's tables, or a SQLite file.

A question is a question post, its text the title alone, and the documents are all answers of the site. Its context is
its own row (body, tags) and what its author leads to (profile, earlier posts, comments, tags, and answers accepted
earlier); none of it is later than the question. Of the question's own answers, votes, links and accepted answer nothing
is a feature (DAQu, appendix A).
"""

import re
from datetime import datetime
from typing import Any

from helios.augment.model import ROW_COLUMN
from helios.errors import EvaluationError
from helios.evaluation.augment.tables import Tables
from helios.evaluation.augment.tasks import LATER, ROW, USER, WHOLE, Column, RowQuestion, Task

LAYOUT = "Stack Exchange"
WANTED = {
    "posts": ("id", "posttypeid", "parentid", "creationdate", "title", "body", "owneruserid"),
    "comments": ("id", "postid", "userid", "creationdate", "text"),
    "users": ("id", "aboutme"),
}
COLUMNS = (
    Column(ROW_COLUMN, WHOLE, "title and text of the question as one text"),
    Column("body", ROW, "the question's own text"),
    Column("tags", ROW, "tags of the question"),
    Column("about_me", USER, "what the author says about themselves"),
    Column("earlier_questions", USER, "questions that the author asked before"),
    Column("earlier_answers", USER, "answers that the author gave before"),
    Column("accepted_answers", USER, "answers that the author accepted before"),
    Column("earlier_comments", USER, "comments that the author wrote before"),
    Column("earlier_tags", USER, "tags of the author's earlier questions"),
)
LATER_COLUMNS = (
    Column("question_comments", LATER, "comments on the question"),
    Column("answer_comments", LATER, "comments on its answers"),
)
"""What the paper's Any Answer has besides tags. Comments on a question come after it, and those on its answers tell
what the answers are about, so they are no part of a task unless asked for."""
ANY_MEASURES = ("Recall@10", "Acc@100", "Recall@20", "Acc@10", "MAP", "MRR")
BEST_MEASURES = ("MRR", "Acc@100", "Acc@10", "Acc@50")
ACCEPTED_VOTE = 1
_MARKUP = re.compile(r"</[a-zA-Z]|<(p|br|pre|li|a|code)\b", re.IGNORECASE)

# Post times are exact, those of votes are days: a vote counts from the end of its day.
_QUERIES = {
    "about_me": "SELECT q.id, NULL, u.aboutme FROM asked q JOIN users u ON u.id = q.owner",
    "earlier_questions": "SELECT q.id, p.id, concat_ws(chr(10), p.title, p.body) FROM asked q JOIN post p "
    "ON p.owner = q.owner AND p.kind = 1 AND p.time < q.time AND p.id <> q.id",
    "earlier_answers": "SELECT q.id, p.id, p.body FROM asked q JOIN post p "
    "ON p.owner = q.owner AND p.kind = 2 AND p.time < q.time AND p.parent <> q.id",
    "accepted_answers": "SELECT q.id, a.id, a.body FROM asked q JOIN post p "
    "ON p.owner = q.owner AND p.kind = 1 AND p.time < q.time AND p.id <> q.id "
    "JOIN post a ON a.parent = p.id AND a.kind = 2 JOIN acceptance v ON v.post = a.id AND v.time <= q.time",
    "earlier_comments": "SELECT q.id, c.id, c.text FROM asked q JOIN comments c "
    "ON c.userid = q.owner AND TRY_CAST(c.creationdate AS TIMESTAMP) < q.time AND c.postid <> q.id",
    "earlier_tags": "SELECT DISTINCT q.id, NULL, t.tag FROM asked q JOIN post p "
    "ON p.owner = q.owner AND p.kind = 1 AND p.time < q.time AND p.id <> q.id JOIN post_tag t ON t.post = p.id",
    "tags": "SELECT q.id, NULL, t.tag FROM asked q JOIN post_tag t ON t.post = q.id",
    ROW_COLUMN: "SELECT q.id, NULL, concat_ws(chr(10), p.title, p.body) FROM asked q JOIN post p ON p.id = q.id",
    "body": "SELECT q.id, NULL, p.body FROM asked q JOIN post p ON p.id = q.id",
    "question_comments": "SELECT q.id, c.id, c.text FROM asked q JOIN comments c ON c.postid = q.id",
    "answer_comments": "SELECT q.id, c.id, c.text FROM asked q JOIN post a ON a.parent = q.id AND a.kind = 2 "
    "JOIN comments c ON c.postid = a.id",
}


def any_answer(tables: Tables, *, later: bool = False, cap: int = 200, seed: int = 0) -> Task:
    """Find the answers that anybody gave to a question; those of a positive score where there are scores.

    `later` adds the paper's columns of comments on the question and on its answers, which are later than the question.
    """
    return _task(tables, "any-answer", ANY_MEASURES, later=later, cap=cap, seed=seed)


def best_answer(tables: Tables, *, later: bool = False, cap: int = 200, seed: int = 0) -> Task:
    """Find the answer that the author of a question accepted."""
    return _task(tables, "best-answer", BEST_MEASURES, later=later, cap=cap, seed=seed)


def _task(tables: Tables, name: str, measures: tuple[str, ...], *, later: bool, cap: int, seed: int) -> Task:
    tables.need(LAYOUT, WANTED)
    _define(tables)
    columns = COLUMNS + (LATER_COLUMNS if later else ())
    relevant: dict[str, dict[str, int]] = {}
    condition = "accepted" if name == "best-answer" else "good"
    for question, answer, accepted in tables.rows(
        f"SELECT parent, id, accepted FROM answer WHERE {condition} ORDER BY id"
    ):
        relevant.setdefault(str(question), {})[str(answer)] = 2 if accepted and name == "any-answer" else 1
    if not relevant:
        raise EvaluationError(f"{tables.path}: no question has an answer for {name}")
    tables.define("asked", "SELECT id, time, owner FROM post WHERE kind = 1 AND title IS NOT NULL AND id IN "
                  f"(SELECT parent FROM answer WHERE {condition})")  # fmt: skip
    contexts = _contexts(tables, columns, cap=cap, seed=seed)
    questions = tuple(
        RowQuestion(
            str(number), plain_text(title), None if owner is None else str(owner), _time(time),
            contexts.get(str(number), {}), relevant[str(number)],
        )
        for number, title, owner, time in tables.rows(
            "SELECT q.id, p.title, q.owner, q.time FROM asked q JOIN post p ON p.id = q.id ORDER BY q.id"
        )
    )  # fmt: skip
    documents = {
        str(number): plain_text(body or "") for number, body in tables.rows("SELECT id, body FROM answer ORDER BY id")
    }
    return Task(name, columns, questions, documents, measures)


def _define(tables: Tables) -> None:
    """Posts, answers, tags and acceptances as the queries read them."""
    has_score, has_accepted = tables.has("posts", "score"), tables.has("posts", "acceptedanswerid")
    score = "TRY_CAST(score AS BIGINT)" if has_score else "1"
    tables.define(
        "post",
        f"""SELECT TRY_CAST(id AS BIGINT) id, TRY_CAST(posttypeid AS BIGINT) kind, TRY_CAST(parentid AS BIGINT) parent,
        TRY_CAST(creationdate AS TIMESTAMP) time, {score} score, title, body, TRY_CAST(owneruserid AS BIGINT) owner,
        {"TRY_CAST(acceptedanswerid AS BIGINT)" if has_accepted else "NULL::BIGINT"} accepted FROM posts""",
    )
    if tables.has("votes", "postid", "votetypeid", "creationdate"):
        day = "min(TRY_CAST(creationdate AS TIMESTAMP))"
        votes = f"""SELECT TRY_CAST(postid AS BIGINT) post, {day} + INTERVAL 1 DAY time
            FROM votes WHERE TRY_CAST(votetypeid AS BIGINT) = {ACCEPTED_VOTE} GROUP BY 1"""
    else:
        votes = "SELECT NULL::BIGINT post, NULL::TIMESTAMP time WHERE false"
    tables.define("acceptance", votes)
    accepted = "id IN (SELECT accepted FROM post WHERE accepted IS NOT NULL)" if has_accepted else (
        "id IN (SELECT post FROM acceptance)"
    )  # fmt: skip
    tables.define(
        "answer",
        f"""SELECT id, parent, body, {accepted} accepted, ({accepted} OR score > 0) good FROM post
        WHERE kind = 2""",
    )
    tables.define("post_tag", _tags(tables))


def _tags(tables: Tables) -> str:
    if tables.has("posttags", "postid", "tagid") and tables.has("tags", "id", "tagname"):
        return """SELECT TRY_CAST(p.postid AS BIGINT) post, replace(t.tagname, '-', ' ') tag
            FROM posttags p JOIN tags t ON t.id = p.tagid"""
    if tables.has("posts", "tags"):
        return """SELECT TRY_CAST(id AS BIGINT) post, replace(tag, '-', ' ') tag
            FROM (SELECT id, unnest(regexp_extract_all(tags, '[^<>|]+')) tag FROM posts) WHERE tag <> ''"""
    return "SELECT NULL::BIGINT post, NULL::VARCHAR tag WHERE false"


def _contexts(
    tables: Tables, columns: tuple[Column, ...], *, cap: int, seed: int
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Attributes by question and column; of more than `cap` a sample that the seed decides."""
    found: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        for question, text in tables.sample(_QUERIES[column.name], cap=cap, seed=seed):
            if words := plain_text(text):
                found.setdefault(str(question), {}).setdefault(column.name, []).append(words)
    return {question: {name: tuple(own) for name, own in by.items()} for question, by in found.items()}


def plain_text(text: str) -> str:
    """The words of a post, which is HTML in dumps."""
    if not _MARKUP.search(text):
        return text.strip()
    from lxml import etree, html

    try:
        return str(html.fromstring(f"<div>{text}</div>").text_content()).strip()
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return text.strip()


def _time(value: Any) -> datetime | None:
    return value if isinstance(value, datetime) else None
