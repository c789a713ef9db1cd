"""Questions over a graph of huts and trails: numbers that name nodes, lower-case values, passives, two of one kind."""

import pytest

from helios.routing.formulation.graph_reading import GraphReading
from helios.routing.formulation.graph_vocabulary import GraphVocabulary
from helios.sources.base import ValueHit
from helios.sources.descriptor import Column, GraphSchema, NodeLabel, RelationshipType

VALUES = {
    "rocky": ("Trail", "surface"), "wild flowers": ("Theme", "name"), "old forests": ("Theme", "name"),
    "High Hut": ("Hut", "name"), "Low Hut": ("Hut", "name"), "North Ridge": ("Trail", "name"),
}  # fmt: skip


class Values:
    """Finds the values by their very words."""

    def find_values(self, phrases, *, limit=5):
        return tuple(ValueHit(phrase, phrase, VALUES[phrase], 1.0) for phrase in phrases if phrase in VALUES)


def columns(**types):
    samples = {"opened": ("1950", "1988"), "year": ("2001", "2019")}
    return tuple(Column(name, type_, samples=samples.get(name, ())) for name, type_ in types.items())


@pytest.fixture(scope="module")
def vocabulary():
    labels = (
        NodeLabel("Hut", columns(name="STRING", beds="INT64", opened="INT64", open_all_year="BOOL"), 9),
        NodeLabel("Trail", columns(name="STRING", surface="STRING", lengthKm="DOUBLE"), 9),
        NodeLabel("Area", columns(number="INT64", name="STRING", dayFee="DOUBLE"), 5),
        NodeLabel("Guide", columns(title="STRING", year="INT64", publisher="STRING"), 9),
        NodeLabel("Theme", columns(name="STRING"), 9),
        NodeLabel("Permit", columns(code="STRING", cost="DOUBLE"), 9),
    )
    ends = [
        ("PASSES", "Trail", "Hut"), ("IN_AREA", "Hut", "Area"), ("LINKED_TO", "Hut", "Hut"),
        ("ABOUT", "Guide", "Theme"),
        ("QUOTES", "Guide", "Guide"), ("PUBLISHED_FOR", "Guide", "Area"), ("VALID_ON", "Permit", "Trail"),
    ]  # fmt: skip
    return GraphVocabulary(GraphSchema(labels, tuple(RelationshipType(*end, (), 9) for end in ends)))


@pytest.fixture(scope="module")
def plan(vocabulary):
    def read(question):
        return GraphReading(vocabulary.read(question, Values()), vocabulary).read()

    return read


def conditions(plan):
    return [(condition.item.property, condition.operator, condition.value) for condition in plan.conditions]


def test_a_number_behind_a_label_names_a_node(plan):
    assert conditions(plan("What is the day fee in area 3?")) == [("number", "=", 3)]
    found = plan("Which area 2 huts have more than 20 beds?")
    assert conditions(found) == [("number", "=", 2), ("beds", ">", 20)]
    assert found.nodes[0].label == "Hut"


def test_numbers_of_things_are_counts_or_amounts_and_no_property(plan):
    (item,) = plan("What is the average number of beds of the huts?").select
    assert (item.property, item.aggregate) == ("beds", "avg")


def test_values_in_lower_case_are_looked_up(plan):
    assert conditions(plan("List the names of all rocky trails.")) == [("surface", "=", "rocky")]
    assert conditions(plan("Which guides are about wild flowers?")) == [("name", "=", "wild flowers")]


def test_both_of_two_values_need_a_node_each(plan):
    found = plan("Which guides are about both wild flowers and old forests?")
    assert len({c.item.alias for c in found.conditions}) == 2
    assert [hop.type for hop in found.hops] == ["ABOUT", "ABOUT"]
    (either,) = plan("Which trails pass High Hut or Low Hut?").conditions
    assert (either.operator, either.values) == ("IN", ("High Hut", "Low Hut"))


def test_a_passive_turns_a_relationship_round(plan):
    (hop,) = plan("Which guide is quoted the most?").hops
    assert hop.end == "g0"
    (absent,) = plan("How many guides have never been quoted?").absent
    assert (absent.start, absent.end) == ("", "g0")


def test_what_holds_both_ways_is_drawn_both_ways(plan):
    (hop,) = plan("Which huts are linked to High Hut?").hops
    assert hop.either_way


def test_a_verb_is_no_property_where_a_relationship_has_it(plan):
    found = plan("How many guides were published in 2019?")
    assert conditions(found) == [("year", "=", 2019)]
    (item,) = plan("In which year was the hut High Hut opened?").select
    assert item.property == "opened"


def test_units_hyphens_and_possessives_do_not_hide_a_name(plan):
    assert conditions(plan("Show the trails longer than 10 km.")) == [("lengthKm", ">", 10)]
    assert conditions(plan("How many open-all-year huts are there?")) == [("open_all_year", "=", True)]
    found = plan("Show each area's name with its total beds, from highest to lowest.")
    assert [item.property for item in found.select] == ["name", "beds"]
    assert found.order == found.select[1]


def test_extremes_and_different_things(plan):
    extremes = plan("What are the smallest and the largest number of beds of a hut?").select
    assert [item.aggregate for item in extremes] == [
        "min", "max"
    ]  # fmt: skip
    (item,) = plan("How many different trail surfaces are there?").select
    assert (item.property, item.aggregate, item.distinct) == ("surface", "count", True)
    assert [item.property for item in plan("Give the code of each permit.").select] == ["code"]
    assert conditions(plan("Find the huts whose name contains the word High.")) == [("name", "CONTAINS", "High")]
    found = plan("Give the name of each trail and the number of huts it passes, most huts first.")
    assert found.limit is None and found.order is not None
