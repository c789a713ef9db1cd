"""The page in a real browser: Debian's chromium, headless. `make browser` sets it up."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
AXE = Path(sys.prefix) / "browser" / "package" / "axe.min.js"
"""axe-core from npm, where `make browser` puts it."""
TO_SOURCES = "What is the highest total of an invoice of Anna Berg?"
QUESTION = "Which is the longest river of Europe?"
pytestmark = [
    pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is not installed: make browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: make browser"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tab(browser, server):
    """A tab that fails the test for any error in it, and for any request that leaves the server."""
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("request", lambda one: None if one.url.startswith(server.address) else troubles.append(one.url))
    page.set_default_timeout(60_000)
    yield page
    page.close()
    assert troubles == []


def test_ask_by_keyboard_follow_a_citation_and_open_a_star(tab, server):
    tab.goto(server.address)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.focus("#q")
    tab.keyboard.type(QUESTION)
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".card")
    assert tab.inner_text("h1") == "Volga"
    assert parse_qs(urlsplit(tab.url).query)["q"] == [QUESTION]
    assert tab.inner_text("#e1 td.linking") == "Volga"
    tab.hover(".words [data-word=river]")
    assert "river" in [text.lower() for text in tab.locator(".lit").all_inner_texts()]
    tab.hover("h1")
    assert tab.locator(".lit").count() == 0
    tab.click("#e1 caption a")
    tab.wait_for_selector("nav.steps")
    assert tab.inner_text(".passage h3") == "Volga"
    tab.click(".passage h3 a")
    assert re.search(r"1 row that names it", tab.inner_text("main"))


def test_a_filter_stays_in_the_address(tab, server):
    tab.goto(server.address)
    tab.click("summary")
    tab.fill("#q", QUESTION)
    tab.fill("#where", "table.title = 'Rivers of Europe'")
    tab.click("form.ask button")
    tab.wait_for_selector(".coverage")
    assert "with your filter" in tab.inner_text(".coverage")
    tab.reload()
    assert tab.input_value("#where") == "table.title = 'Rivers of Europe'"


def test_it_works_without_javascript(browser, server):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.address)
    page.fill("#q", QUESTION)
    page.click("form.ask button")
    page.wait_for_selector(".card", timeout=60_000)
    assert page.inner_text("h1") == "Volga"
    context.close()


def test_an_abstention_in_the_dark_on_a_phone(browser, server):
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{server.address}/ask?q=Who+won+the+2031+chess+championship%3F", timeout=60_000)
    assert page.inner_text("h1") == "No answer"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    red, green, blue = map(
        int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
    )
    assert max(red, green, blue) < 60
    context.close()


def test_a_server_that_is_gone_is_told_and_found_again(browser, comes_and_goes):
    server, leave, come_again = comes_and_goes
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(server.address)
    leave()
    page.fill("#q", QUESTION)
    page.click("form.ask button")
    page.wait_for_selector("#away")
    assert "does not answer" in page.inner_text("#away")
    assert page.is_enabled("form.ask button")
    come_again()
    page.wait_for_selector("#away:has-text('there again')")
    page.click("form.ask button")
    page.wait_for_selector(".card")
    page.close()


@pytest.fixture(scope="module")
def with_sources(start_server, registry):
    """The address of a server with sources, warm: the first question to them loads models."""
    address = start_server(sources=registry).address
    httpx.get(f"{address}/sources.json", params={"q": TO_SOURCES}, timeout=60)
    return address


def test_the_graph_of_a_star_is_opened_and_walked(tab, server):
    tab.goto(f"{server.address}/row?table=summer-olympics&row=1")
    tab.click("text=Graph around it")
    tab.wait_for_selector("svg")
    assert tab.locator("svg .node").count() == 2
    tab.locator("svg .node.passage").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("h1:has-text('Athens')")


def test_the_query_of_a_source_is_edited_and_run_again(browser, with_sources):
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{with_sources}/sources")
    page.fill("#q", TO_SOURCES)
    page.press("#q", "Enter")
    page.wait_for_selector(".answer")
    assert page.inner_text("h1") == "120.5"
    page.click("text=Edit and run")
    page.wait_for_selector("#query")
    page.fill("#query", page.input_value("#query").replace("Anna Berg", "Jon Falk"))
    page.click("form.query button")
    page.wait_for_selector(".ran")
    assert page.inner_text(".ran td") == "300.0"
    page.fill("#query", "DROP TABLE invoice")
    page.click("form.query button")
    page.wait_for_selector(".verdict:has-text('refused')")
    assert page.input_value("#query") == "DROP TABLE invoice"
    page.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: make browser")
@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 360)])
def test_nothing_serious_is_found_by_axe(browser, with_sources, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    edited = urlencode({"name": "shop", "query": "SELECT * FROM customer"})
    rest = (
        "/",
        "/row?table=summer-olympics&row=1",
        "/passage?id=athens",
        "/status",
        "/row?table=none&row=0",
        "/sources",
    )
    for path in (
        f"/ask?{urlencode({'q': QUESTION})}", "/graph?id=athens", f"/sources?{urlencode({'q': TO_SOURCES})}",
        f"/source?{edited}", *(rest if scheme == "light" else ()),
    ):  # fmt: skip
        page.goto(with_sources + path)
        if path.startswith("/source?"):
            page.click("form.query button")
            page.wait_for_selector(".ran")
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run(document)")["violations"]
        assert [(one["id"], one["nodes"][0]["target"]) for one in found] == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
    context.close()


@pytest.mark.skipif("HELIOS_SCREENSHOTS" not in os.environ, reason="HELIOS_SCREENSHOTS names no folder")
def test_screenshots_for_the_documents(browser, with_sources):
    folder = os.environ["HELIOS_SCREENSHOTS"]
    query = urlencode(
        {"name": "shop", "query": "SELECT name, total FROM invoice JOIN customer ON customer_id = customer.id"}
    )
    for name, size, colours, path in (
        ("page.png", (1000, 880), "light", f"/ask?{urlencode({'q': QUESTION})}"),
        ("page-phone.png", (360, 740), "dark", "/ask?q=Who+won+the+2031+chess+championship%3F"),
        ("page-source.png", (920, 640), "light", f"/source?{query}"),
    ):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=colours)
        page = context.new_page()
        page.goto(with_sources + path, timeout=60_000)
        if path.startswith("/source?"):
            page.click("form.query button")
            page.wait_for_selector(".ran")
        page.screenshot(path=f"{folder}/{name}")
        context.close()
