"""/v1/responses, through the openai SDK."""

import httpx
import openai
import pytest

QUESTION = "Which is the longest river of Europe?"


@pytest.fixture
def chat(server):
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


def test_an_answer_with_annotations(chat, server):
    reply = chat.responses.create(model="helios", input=QUESTION, temperature=0.7)
    assert reply.output_text.startswith("Volga\n\n[1] ")
    assert (reply.status, reply.store, reply.usage.total_tokens) == ("completed", False, 0)
    (part,) = reply.output[0].content
    assert part.annotations
    for annotation in part.annotations:
        assert annotation.title in part.text[annotation.start_index : annotation.end_index]
        assert annotation.url.startswith(server.address)
        assert httpx.get(annotation.url, timeout=60).status_code == 200


def test_the_last_words_of_a_user_are_the_question(chat):
    said = [
        {"role": "user", "content": "Who designed Pascal?"},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        {"role": "developer", "content": "Be brief."},
    ]
    reply = chat.responses.create(model="helios/sample", input=said, metadata={"mine": "1"})
    assert reply.output_text.startswith("Volga")
    assert reply.metadata == {"mine": "1"}


def test_a_stream_has_the_same_words(chat):
    whole = chat.responses.create(model="helios", input=QUESTION)
    events = list(chat.responses.create(model="helios", input=QUESTION, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    last = events[-1].response
    assert last.output_text == whole.output_text
    cited = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    assert len(cited) == len(whole.output[0].content[0].annotations)
    with chat.responses.stream(model="helios", input=QUESTION) as stream:
        assert stream.get_final_response().output_text == whole.output_text


def test_an_abstention_says_so(chat):
    assert chat.responses.create(model="helios", input="Who won the 2031 chess championship?").output_text.startswith(
        "No answer: "
    )


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"model": "gpt-9", "input": QUESTION}, 404),
        ({"model": "helios", "input": " "}, 422),
        ({"model": "helios", "input": []}, 422),
        ({"model": "helios", "input": "x" * 2001}, 422),
        ({"model": "helios", "input": QUESTION, "previous_response_id": "resp_1"}, 422),
        ({"model": "helios", "input": QUESTION, "background": True}, 422),
    ],
)
def test_failures_are_errors_and_never_words_of_an_answer(chat, more, status):
    with pytest.raises(openai.APIStatusError) as failed:
        chat.responses.create(**more)
    assert failed.value.status_code == status
    assert failed.value.body["todo"]
