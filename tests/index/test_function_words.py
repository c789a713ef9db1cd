"""Words that say nothing, by language."""

import numpy as np
import pytest

from helios.index.function_words import LIGHT, function_spans, telling_terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Who do I get when I dial 33?", ["dial", "33"]),
        ("Which war ended in 1918?", ["war", "ended", "1918"]),
        ("Wann war die Prüfung von Frau Meier?", ["prufung", "frau", "meier"]),
        ("Combien de livres avons-nous ?", ["livre", "avon"]),
        ("¿Cuántas vacas hay en la finca?", ["vaca", "finca"]),
        ("Who is he?", ["who", "is", "he"]),
    ],
)
def test_terms_that_say_something(question, terms):
    assert telling_terms(question) == terms


def test_their_characters():
    assert [("what is the Rhine"[a:b]) for a, b in function_spans("what is the Rhine")] == ["what", "is", "the"]
    assert function_spans("what is the") == []


def test_function_words_weigh_little_however_rare_they_are(engine):
    query = engine.query("do we get the Danube")
    words = ["do we get the Danube"[a:b].lower() for a, b in query.tokens.spans.tolist()]
    weights = dict(zip(words, query.weights_Q.tolist(), strict=False))
    rest = [weight for word, weight in weights.items() if word not in ("do", "we", "get", "the")]
    assert max(weights[word] for word in ("do", "we", "get", "the")) < min(rest)
    assert np.mean(query.weights_Q[: len(words)]) == pytest.approx(1.0, abs=1e-5)
    assert 0 < LIGHT < 1
