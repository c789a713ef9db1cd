"""The values of a context."""

import pytest

from helios.augment.context import Attribute, Context, ContextColumn, Kind


def test_a_context_of_ones_own_values() -> None:
    context = Context.from_columns({"tags.name": ["qiskit", " ", "measurement"], "empty.column": [""]})
    assert [column.name for column in context.columns] == ["tags.name"]
    assert context.texts() == ("qiskit", "measurement") and len(context) == 2 and context
    assert context.columns[0].found == context.columns[0].kept == 2


def test_a_context_without_attributes_is_false() -> None:
    assert not Context() and not Context.from_columns({"a.b": []})
    assert not Context((ContextColumn("a.b", found=3),))


def test_one_text_is_no_list_of_texts() -> None:
    with pytest.raises(TypeError, match="tags.name.*list of texts"):
        Context.from_columns({"tags.name": "qiskit"})


def test_the_way_to_a_column_is_its_role() -> None:
    attribute = Attribute("posts.title", "Why?", "posts:1", Kind.TEXT, 60.0)
    own = ContextColumn("posts.title", (), (attribute,), 1)
    earlier = ContextColumn("posts.title", ("posts.owner_user_id > users.id",), (attribute,), 1)
    assert own.role != earlier.role and hash(own) != hash(earlier)
