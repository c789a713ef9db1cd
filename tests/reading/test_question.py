"""What questions ask for: asking word, kind and focus."""

import pytest

from helios.reading.question import Kind, ask, ask_in_any_language


@pytest.mark.parametrize(
    ("question", "word", "kind", "focus"),
    [
        ("What date did the station open ?", "what", Kind.DATE, ("date",)),
        ("Which gulf is north of the city ?", "which", Kind.THING, ("gulf",)),
        ("Who translated the book published in 1979 ?", "who", Kind.PERSON, ()),
        ("When was the winner born ?", "when", Kind.DATE, ()),
        ("Where is the site ?", "where", Kind.PLACE, ()),
        ("How many goals did he score ?", "how", Kind.COUNT, ("many", "goal")),
        ("How tall is the tower that opened in 1990 ?", "how", Kind.MEASURE, ("tall",)),
        ("In what year was the actor who played him born ?", "what", Kind.YEAR, ("year",)),
        ("What is the name of the actor who was born in Bombay ?", "what", Kind.PERSON, ("actor",)),
        ("The system is found in what state ?", "what", Kind.PLACE, ("state",)),
        ("It was worth more than what , in 2018 ?", "what", Kind.UNKNOWN, ()),
        ("Name the river", "", Kind.UNKNOWN, ()),
        ("", "", Kind.UNKNOWN, ()),
    ],
)
def test_taken_apart(question, word, kind, focus):
    asked = ask(question)
    assert (asked.word, asked.kind, asked.focus) == (word, kind, focus)


def test_focus_span_is_the_asking_word_to_the_end_of_the_focus():
    asked = ask("In what English title was it sold ?")
    assert asked.text[slice(*asked.focus_span)] == "what English title"


def test_terms_are_without_stop_words_and_plurals():
    assert ask("Which teams of the league won titles ?").terms == ("team", "league", "won", "title")


@pytest.mark.parametrize(
    ("question", "word", "kind"),
    [
        ("Wer hat Glaswelten gefördert?", "who", Kind.PERSON),
        ("Wann ist das Fest?", "when", Kind.DATE),
        ("Où est né Zola ?", "where", Kind.PLACE),
        ("¿Quién vive en Los Llanos?", "who", Kind.PERSON),
        ("¿Cuántas cabras siguen en la finca?", "how", Kind.COUNT),
        ("谁设计了这座桥？", "who", Kind.PERSON),
        ("这座桥是什么时候建成的？", "when", Kind.DATE),
        ("Was kostet die Jahreskarte?", "", Kind.UNKNOWN),
    ],
)
def test_asking_words_of_other_languages(question, word, kind):
    asked = ask_in_any_language(question)
    assert (asked.word, asked.kind) == (word, kind)
    assert ask(question).kind is Kind.UNKNOWN
