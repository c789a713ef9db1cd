"""/docs: the HTTP interface in words, from the server's own description."""

import httpx
from lxml import html


def test_the_page_has_every_operation_and_needs_nothing_else(server):
    reply = httpx.get(f"{server.address}/docs")
    assert reply.status_code == 200
    assert "script-src" not in reply.headers["content-security-policy"]
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    page = html.fromstring(reply.text)
    assert not page.xpath("//script")
    for link in page.xpath("//@href | //@src"):
        assert link.startswith(("/", "#")), link
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in page.xpath("//@href") if link.startswith("#")} <= set(ids)
    openapi = httpx.get(f"{server.address}/openapi.json").json()
    titles = page.xpath("//h2/code/text()")
    for path, operations in openapi["paths"].items():
        for method in operations:
            assert f"{method.upper()} {path}" in titles
    assert set(openapi["components"]["schemas"]) == set(page.xpath("//h3/text()"))


def test_every_body_has_an_example_that_fits(server):
    openapi = httpx.get(f"{server.address}/openapi.json").json()
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for operations in openapi["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    assert len(bodies) > 10
    for name in bodies:
        assert openapi["components"]["schemas"][name]["examples"], name


def test_every_status_of_a_problem_is_described_with_its_codes(server):
    openapi = httpx.get(f"{server.address}/openapi.json").json()
    described = openapi["components"]["responses"]
    assert {"405", "408", "410", "413", "415", "421", "429", "502", "503", "504"} <= set(described)
    codes = {code for one in described.values() for code in one["content"]["application/problem+json"]["examples"]}
    assert codes == set(openapi["components"]["schemas"]["ProblemDocument"]["properties"]["code"]["enum"])
