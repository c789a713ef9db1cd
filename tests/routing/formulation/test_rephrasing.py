"""What people add to a question, in the words that the reader of questions knows."""

import pytest

from helios.routing.formulation.rephrasing import rephrased


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which shops are closed? Name and town.", "Which shops are closed? Give name and town."),
        ("Who has left? SKU and name only, please.", "Who has left? Give SKU and name."),
        ("Which shops are open? We moved in May.", "Which shops are open? We moved in May."),
        ("Which pupils go to St. Mary School?", "Which pupils go to St. Mary School?"),
        ("Names of the shops above 600 metres", "List names of the shops above 600 metres"),
        ("List the fees, from the highest down.", "List the fees, highest first."),
        ("List the fees. Biggest first.", "List the fees, biggest first."),
        ("Which birds come from the forest?", "Which birds come from the forest?"),
        ("How many came from the northwest?", "How many came from the northwest?"),
        ("Which breed is the one with the most dogs?", "Which breed is the one with the most dogs?"),
        ("Orders from May to July 2024", "Orders between May 2024 and July 2024"),
        ("How many shops are there, counting the closed ones too?", "How many shops are there ?"),
        ("What do the rates add up to?", "what is the total of the rates?"),
        ("Which shops do we own? List each shop once.", "Which shops do we own? each one once."),
        ("Which shops do we own? Each shop name once.", "Which shops do we own? each one once."),
        ("Which shops are in Ryde, closed ones included?", "Which shops are in Ryde ?"),
        ("Who works in Ryde, including anyone who has left?", "Who works in Ryde ?"),
        ("Which shop cost the most?", "Which shop has the highest total cost?"),
        ("What costs the least?", "What costs the least?"),
        ("Which trips have Kew Gardens in the name?", 'Which trips have a name containing "Kew Gardens"?'),
        ("Songs with rain in their title, please", 'Songs with a title containing "rain"'),
        ("Which jobs mention a needle in the notes?", 'Which jobs with a notes containing "needle"?'),
        ("Jobs whose fault notes mention the petrol pump?", 'Jobs whose fault notes containing "petrol pump"?'),
        ("Which notes talk about rust and are old?", 'Which notes containing "rust" and are old?'),
        ("Songs with three words in the title", "Songs with three words in the title"),
        ("Songs with nothing in the notes", "Songs with nothing in the notes"),
        ("Songs with the word rain in the title", "Songs with the word rain in the title"),
        ("How many have love or hate in the title?", "How many have love or hate in the title?"),
        ("Which notes contain more than 5 items?", "Which notes contain more than 5 items?"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_question_is_put_as_the_reader_knows_it(question: str, expected: str):
    assert rephrased(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which shows took more than £1,000?", "Which shows have total revenue of more than £1,000?"),
        ("Which shows took over 500 euros?", "Which shows have total revenue of over 500 euros?"),
        ("Which hikes take more than 3 hours?", "Which hikes take more than 3 hours?"),
        ("How much has Ann spent?", "what is the total revenue of Ann?"),
        ("How much does Ann earn?", "How much does Ann earn?"),
        ("How much time did the repair take?", "How much time did the repair take?"),
    ],
)
def test_money_is_taken_and_spent_where_prices_and_numbers_are_known(question: str, expected: str):
    """Hours are taken too, and what somebody earns is a wage."""
    assert rephrased(question, money=True) == expected
    assert rephrased(question) == question
