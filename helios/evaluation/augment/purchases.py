"""Future purchases over RelBench's Amazon and H&M tables: what will a customer buy after this?

A question is one purchase: the text of its review (ReviewToProduct) or what the product is described as
(ProductToProduct), and the documents are the products. Relevant is what the customer buys later in the same part of
the split. The context is the product and what the customer bought and wrote before; nothing of it is later than the
purchase. Customers are drawn by the seed, so many for each part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from helios.errors import EvaluationError
from helios.evaluation.augment.tables import Tables
from helios.evaluation.augment.tasks import ROW, USER, Column, RowQuestion, Task

LAYOUT_AMAZON, LAYOUT_HM = "RelBench's Amazon (product, review)", "H&M (article, customer, transactions)"
AMAZON_MEASURES = ("Recall@1000", "Acc@500", "Acc@1000", "Recall@500")
HM_MEASURES = ("Recall@100", "Acc@50", "Acc@100", "Recall@50")
PARTS = ("train", "validation", "test")
NAMES_HM = ("producttypename", "productgroupname", "perceivedcolourmastername", "departmentname", "indexname",
            "indexgroupname", "sectionname", "garmentgroupname")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Draw:
    """Which purchases are questions: the first day of each part and the day after the last, and customers of each."""

    days: tuple[str, str, str, str]
    customers: tuple[int, int, int] = (5000, 500, 500)
    cap: int = 200
    """Attributes of a column that are kept at most."""
    seed: int = 0


AMAZON_DRAW = Draw(("2013-01-01", "2014-01-01", "2015-01-01", "2016-01-01"))
HM_DRAW = Draw(("2020-01-01", "2020-08-01", "2020-08-22", "2020-09-15"))
"""The paper names the first and the last day; the two between are ours."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a data set says who bought what: queries over its tables, and what a product is."""

    purchases: str
    """number, customer, product, time, said"""
    products: str
    """product, words, description"""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Columns of the product itself: name → query of (product, text)."""
    earlier: Mapping[str, str] = field(default_factory=dict)
    """Columns of earlier purchases' products, as `facts`."""


def review_to_product(tables: Tables, draw: Draw = AMAZON_DRAW) -> Task:
    """Amazon: a review, and what its author will buy."""
    return _amazon(tables, "review-to-product", draw)


def product_to_product(tables: Tables, draw: Draw | None = None) -> Task:
    """A product that a customer bought, and what they will buy: of Amazon's tables or of H&M's."""
    if tables.has("review") or tables.has("reviews"):
        return _amazon(tables, "product-to-product", draw or AMAZON_DRAW)
    return _hm(tables, draw or HM_DRAW)


def _amazon(tables: Tables, name: str, draw: Draw) -> Task:
    tables.need(LAYOUT_AMAZON, {
        "product": ("productid", "title", "description", "category"),
        "review": ("customerid", "productid", "reviewtime", "reviewtext"),
    })  # fmt: skip
    product = "SELECT CAST(productid AS VARCHAR) product, CAST({} AS VARCHAR) text FROM product"
    category = "SELECT CAST(productid AS VARCHAR) product, {} text FROM product".format(
        "unnest(category)" if tables.has_list("product", "category") else
        "unnest(regexp_extract_all(CAST(category AS VARCHAR), '[^\\[\\]'',\"|]*[^\\[\\]'',\"| ]'))"
    )  # fmt: skip
    facts = {"category": category, "title": product.format("title")}
    earlier = {**facts, "description": product.format("description")}
    if name == "review-to-product":
        facts = {**facts, "description": product.format("description")}
    layout = _Layout(
        "SELECT row_number() OVER (ORDER BY customerid, reviewtime, productid) number, CAST(customerid AS VARCHAR) "
        "customer, CAST(productid AS VARCHAR) product, TRY_CAST(reviewtime AS TIMESTAMP) time, "
        "CAST(reviewtext AS VARCHAR) said FROM review",
        "SELECT CAST(productid AS VARCHAR) product, concat_ws(chr(10), title, CAST(description AS VARCHAR)) words, "
        "CAST(description AS VARCHAR) description FROM product",
        facts, earlier,
    )  # fmt: skip
    columns = [Column(f"product_{fact}", ROW, f"{fact} of the product") for fact in facts]
    columns += [Column(f"earlier_{fact}", USER, f"{fact} of products bought before") for fact in earlier]
    columns.append(Column("earlier_review", USER, "reviews that the customer wrote before"))
    if name == "product-to-product":
        columns.append(Column("review", ROW, "what the customer wrote of the product"))
    return _task(tables, name, columns, layout, AMAZON_MEASURES, draw)


def _hm(tables: Tables, draw: Draw) -> Task:
    bought = next((one for one in ("transactions", "transactionstrain") if tables.has(one)), "transactions")
    article = next((one for one in ("article", "articles") if tables.has(one)), "article")
    tables.need(LAYOUT_HM, {
        article: ("articleid", "prodname", "detaildesc", *NAMES_HM), bought: ("tdat", "customerid", "articleid"),
    })  # fmt: skip
    facts = {
        one: f"SELECT CAST(articleid AS VARCHAR) product, CAST({one} AS VARCHAR) text FROM {article}"
        for one in NAMES_HM
    }  # fmt: skip
    described = f"SELECT CAST(articleid AS VARCHAR) product, detaildesc text FROM {article}"
    layout = _Layout(
        "SELECT row_number() OVER (ORDER BY customerid, tdat, articleid) number, CAST(customerid AS VARCHAR) customer, "
        f"CAST(articleid AS VARCHAR) product, TRY_CAST(tdat AS TIMESTAMP) time, NULL said FROM {bought}",
        "SELECT CAST(articleid AS VARCHAR) product, concat_ws(chr(10), prodname, detaildesc) words, "
        f"detaildesc description FROM {article}",
        facts, {"description": described},
    )  # fmt: skip
    columns = [Column(f"product_{one}", ROW, one) for one in facts]
    columns.append(Column("earlier_description", USER, "descriptions of products bought before"))
    customer = next((one for one in ("customer", "customers") if tables.has(one, "customerid")), None)
    about = [one for one in ("age", "fashionnewsfrequency") if customer and tables.has(customer, one)]
    columns += [Column(f"customer_{one}", USER, f"{one} of the customer") for one in about]
    said = {
        f"customer_{one}": f"SELECT CAST(customerid AS VARCHAR) customer, '{one} ' || CAST({one} AS VARCHAR) text "
        f"FROM {customer}" for one in about
    }  # fmt: skip
    return _task(tables, "product-to-product", columns, layout, HM_MEASURES, draw, customers=said)


def _task(
    tables: Tables, name: str, columns: Sequence[Column], layout: _Layout, measures: tuple[str, ...], draw: Draw,
    *, customers: Mapping[str, str] | None = None,
) -> Task:  # fmt: skip
    tables.define("purchase", layout.purchases)
    tables.define("item", layout.products)
    _draw_questions(tables, draw)
    relevant: dict[str, dict[str, int]] = {}
    for number, product in tables.rows(
        "SELECT DISTINCT q.number, p.product FROM asked q JOIN purchase p ON p.customer = q.customer "
        "AND p.time > q.time AND p.time < q.until AND p.product IN (SELECT product FROM item) ORDER BY 1, 2"
    ):
        relevant.setdefault(str(number), {})[str(product)] = 1
    contexts: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        query = _column_query(column.name, layout, customers or {})
        for number, text in tables.sample(query, cap=draw.cap, seed=draw.seed):
            contexts.setdefault(str(number), {}).setdefault(column.name, []).append(text.strip())
    asked = "said" if name == "review-to-product" else "description"
    questions = tuple(
        RowQuestion(
            str(number), text, str(customer), time if isinstance(time, datetime) else None,
            {column: tuple(own) for column, own in contexts.get(str(number), {}).items()}, relevant[str(number)], part,
        )
        for number, customer, time, part, text in tables.rows(
            f"SELECT number, customer, time, part, trim({asked}) FROM asked ORDER BY number"
        )
        if str(number) in relevant and text
    )  # fmt: skip
    if not questions:
        raise EvaluationError(
            f"{tables.path}: no purchase from {draw.days[0]} to {draw.days[3]} with a later one; are the times those "
            "of the public data set?"
        )
    documents = {
        str(product): words for product, words in tables.rows("SELECT product, words FROM item ORDER BY product")
    }
    return Task(name, tuple(columns), questions, documents, measures)


def _draw_questions(tables: Tables, draw: Draw) -> None:
    """The purchases that are asked about, each with its part and the day after the part's last."""
    parts = " UNION ALL ".join(
        f"SELECT '{part}' part, TIMESTAMP '{first}' first, TIMESTAMP '{until}' until, {int(count)} count"
        for part, first, until, count in zip(PARTS, draw.days[:3], draw.days[1:], draw.customers, strict=True)
    )
    tables.define(
        "asked",
        f"""WITH parts AS ({parts}), within AS (
            SELECT p.*, parts.part, parts.until, parts.count, i.description
            FROM purchase p JOIN parts ON p.time >= parts.first AND p.time < parts.until
            JOIN item i ON i.product = p.product
        ), drawn AS (
            SELECT part, customer, any_value(count) count, row_number() OVER (
                PARTITION BY part ORDER BY hash(concat_ws(' ', {int(draw.seed)}, customer)), customer) place
            FROM within GROUP BY part, customer HAVING min(time) < max(time)
        ) SELECT within.* FROM within JOIN drawn USING (part, customer) WHERE place <= drawn.count""",
    )


def _column_query(name: str, layout: _Layout, customers: Mapping[str, str]) -> str:
    """(question, key, text) of a column."""
    if name in customers:
        return f"SELECT q.number, NULL, c.text FROM asked q JOIN ({customers[name]}) c ON c.customer = q.customer"
    if name == "review":
        return "SELECT number, NULL, said FROM asked"
    before = "asked q JOIN purchase p ON p.customer = q.customer AND p.time < q.time"
    if name == "earlier_review":
        return f"SELECT q.number, p.number, p.said FROM {before}"
    group, _, fact = name.partition("_")
    if group == "product":
        return f"SELECT q.number, NULL, f.text FROM asked q JOIN ({layout.facts[fact]}) f ON f.product = q.product"
    return f"SELECT q.number, p.number, f.text FROM {before} JOIN ({layout.earlier[fact]}) f ON f.product = p.product"
