"""Edges as records: what stands in the text, and metadata that lead back to the row and the cell."""

import json

from helios.adapters.records import records
from helios.types import SegmentId

QUESTION = "Which is the longest river of Europe?"


def test_a_record_leads_back_to_its_row_and_text(engine):
    first = records(engine, QUESTION, k=3)[0]
    assert first.record_id == "european-rivers#0 | volga"
    assert first.text.startswith("Rivers of Europe: River: Volga | Length (km, about): 3,530")
    assert "\nVolga: The Volga is" in first.text
    number = engine.corpus.segment_number(SegmentId(first.metadata["table_id"], first.metadata["row"]))
    row = engine.corpus.segment(number)
    (link,) = json.loads(first.metadata["links"])
    assert row.cells[link["column"]][link["start"] : link["end"]] == "Volga"
    assert first.metadata["passage_id"] == "volga"
    assert 0 < first.probability == first.metadata["probability"] <= 1


def test_a_filter_and_a_number_hold(engine):
    found = records(engine, QUESTION, k=2, where="table.title = 'Rivers of Europe'")
    assert len(found) == 2
    assert {one.metadata["table_title"] for one in found if one.metadata["table_id"]} == {"Rivers of Europe"}


def test_a_reply_of_a_server_is_read_alike(engine):
    class Served:
        def search(self, question, *, k=None, where=None):
            return {"evidence": engine.search(question, k=k, where=where).to_dict()}

    assert records(Served(), QUESTION, k=3) == records(engine, QUESTION, k=3)
