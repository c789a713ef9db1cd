"""OpenAI's shapes, through the openai SDK."""

import json

import httpx
import openai
import pytest

from serving.routes.chat import task_reply

QUESTION = "Which is the longest river of Europe?"
TITLE = """### Task:
Generate a concise, 3-5 word title summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: Which is the longest river of Europe?
ASSISTANT: Volga
</chat_history>"""


@pytest.fixture
def chat(server):
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def asked(*texts: str) -> list[dict]:
    return [{"role": "user", "content": text} for text in texts]


def test_models_are_the_indexes(chat):
    assert [model.id for model in chat.models.list()] == ["helios/sample"]


def test_one_model(chat):
    assert chat.models.retrieve("helios/sample").owned_by == "helios"
    with pytest.raises(openai.NotFoundError):
        chat.models.retrieve("helios/other")


def test_a_stream_ends_with_the_tokens_where_they_are_asked_for(chat):
    asked_for = {"model": "helios", "messages": asked(QUESTION), "stream": True}
    *_, last = chat.chat.completions.create(**asked_for, stream_options={"include_usage": True})
    assert (last.choices, last.usage.total_tokens) == ([], 0)
    assert all(chunk.usage is None for chunk in chat.chat.completions.create(**asked_for))


def test_what_is_null_is_as_if_it_were_not_there(server):
    body = {"model": "helios", "messages": asked(QUESTION), "n": None, "stream_options": {"include_usage": None}}
    assert httpx.post(f"{server.address}/v1/chat/completions", json=body, timeout=60).status_code == 200


def test_more_than_one_answer_is_refused(chat):
    with pytest.raises(openai.UnprocessableEntityError):
        chat.chat.completions.create(model="helios", messages=asked(QUESTION), n=2)


@pytest.mark.parametrize("model", ["helios", "helios/sample"])
def test_an_answer_with_annotations(chat, server, model):
    reply = chat.chat.completions.create(model=model, messages=asked("Hello", QUESTION), temperature=0.7)
    message = reply.choices[0].message
    assert message.content.startswith("Volga\n\n[1] ")
    assert reply.choices[0].finish_reason == "stop"
    assert message.annotations
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert cited.title in message.content[cited.start_index : cited.end_index]
        assert httpx.get(cited.url).status_code == 200
        assert cited.url.startswith(server.address)


def test_an_abstention_says_so(chat):
    messages = asked("Who won the 2031 chess championship?")
    reply = chat.chat.completions.create(model="helios", messages=messages)
    assert reply.choices[0].message.content.startswith("No answer: ")
    assert not reply.choices[0].message.annotations


def test_a_stream_has_the_same_words(chat):
    whole = chat.chat.completions.create(model="helios", messages=asked(QUESTION)).choices[0].message
    chunks = list(chat.chat.completions.create(model="helios", messages=asked(QUESTION), stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    (annotations,) = [
        chunk.choices[0].delta.annotations
        for chunk in chunks
        if "annotations" in (chunk.choices[0].delta.model_extra or {})
    ]
    assert [one["url_citation"]["url"] for one in annotations] == [one.url_citation.url for one in whole.annotations]


def test_content_in_parts(chat):
    parts = [{"type": "text", "text": QUESTION}]
    reply = chat.chat.completions.create(model="helios", messages=[{"role": "user", "content": parts}])
    assert reply.choices[0].message.content.startswith("Volga")


@pytest.mark.parametrize("stream", [False, True])
def test_requests_of_the_chat_program_for_itself_search_nothing(chat, server, stream):
    counted = server.serving.metrics.questions.labels("ask", "single")
    before = counted._value.get()
    reply = chat.chat.completions.create(model="helios", messages=asked(TITLE), stream=stream)
    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in reply) if stream else reply.choices[0].message.content
    )
    assert json.loads(text) == {"title": QUESTION}
    assert counted._value.get() == before


def test_other_tasks_get_what_they_ask_for():
    assert json.loads(task_reply('### Task:\nGenerate 1-3 tags. JSON format: { "tags": ["tag1"] }')) == {"tags": []}
    assert json.loads(task_reply('### Task:\nSuggest { "follow_ups": [] }')) == {"follow_ups": []}
    assert json.loads(task_reply("### Task:\nSomething else")) == {}


@pytest.mark.parametrize(
    ("model", "messages", "status"),
    [
        ("gpt-9", asked(QUESTION), 404),
        ("helios/none", asked(QUESTION), 404),
        ("helios", [{"role": "system", "content": "x"}], 422),
        ("helios", asked(" "), 422),
        ("helios", asked("x" * 2001), 422),
    ],
)
def test_failures_are_errors_and_never_words_of_an_answer(chat, model, messages, status):
    with pytest.raises(openai.APIStatusError) as failed:
        chat.chat.completions.create(model=model, messages=messages)
    assert failed.value.status_code == status
    assert failed.value.body["todo"]
