from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper

from engine import chat_template
from engine.chat_template import Turn
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage, Model
from engine.spans import OWN_SYSTEM_PROMPT, DocumentRange, Prompt, prompt_spans
from engine.tokens import encode_with_offsets
from tests.engine.folders import byte_tokenizer
from tests.engine.test_chat_template import CHATML, DEAF, GEMMA, LLAMA3, MISTRAL

OWN_SYSTEM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a small model that helps.<|im_end|>\n"
    "{% endif %}" + CHATML
)
WITHOUT_REASONING = CHATML.replace("m.content", "m.content.split('</think>')[-1].lstrip('\n')")
SHOUTING = CHATML.replace(
    "{{ m.content }}", "{{ m.content | upper if m.role == 'assistant' else m.content }}"
)
TEMPLATES = [CHATML, LLAMA3, GEMMA, MISTRAL, OWN_SYSTEM, WITHOUT_REASONING, None]

ASKED = ChatMessage("user", "What is it?")
ANSWERED = ChatMessage("assistant", "It is a thing.")
AGAIN = ChatMessage("user", "Why?")


def prompt_of(messages: list[ChatMessage], template: str | None) -> tuple[Prompt, list[str]]:
    """Return a prompt of byte tokens and the text of each of its spans."""
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    wrapper = TokenizerWrapper(tokenizer)

    def render(turns: list[Turn]) -> str:
        return chat_template.render(wrapper, turns, add_generation_prompt=True)

    text = render([{"role": one.role, "content": one.content} for one in messages])
    tokens, offsets = encode_with_offsets(tokenizer, text)
    assert offsets is not None
    spans = prompt_spans(messages, text, offsets, render)
    return Prompt(tokens, spans), [tokenizer.decode(tokens[span.start : span.stop]) for span in spans]


def with_documents(question: str, *texts: str) -> ChatMessage:
    """Return a question with documents called 0, 1, 2, in front."""
    content, ranges = "", []
    for number, text in enumerate(texts):
        ranges.append(DocumentRange(f"{number}", len(content), len(content) + len(text)))
        content += f"{text}\n\n"
    return ChatMessage("user", content + question, tuple(ranges))


def test_words_that_a_template_trims_are_not_taken_for_those_of_a_later_message() -> None:
    words = "The keeper sleeps. "

    prompt, texts = prompt_of([ChatMessage("user", words), ANSWERED, with_documents("Which?", words)], LLAMA3)

    assert texts[0].endswith(words.strip())
    assert [span.kind for span in prompt.spans] == [
        SpanKind.USER,
        SpanKind.ASSISTANT,
        SpanKind.DOCUMENT,
        SpanKind.USER,
        SpanKind.ASSISTANT,
    ]


def test_markers_go_with_what_they_introduce() -> None:
    system = ChatMessage("system", "Be brief.")

    prompt, texts = prompt_of([system, with_documents("Which?", "One.", "Two."), ANSWERED, AGAIN], CHATML)

    assert [(span.kind, span.title, text) for span, text in zip(prompt.spans, texts, strict=True)] == [
        (SpanKind.SYSTEM, "Be brief.", "<|im_start|>system\nBe brief."),
        (SpanKind.DOCUMENT, "0", "<|im_end|>\n<|im_start|>user\nOne."),
        (SpanKind.DOCUMENT, "1", "\n\nTwo."),
        (SpanKind.USER, "Which?", "\n\nWhich?"),
        (SpanKind.ASSISTANT, "It is a thing.", "<|im_end|>\n<|im_start|>assistant\nIt is a thing."),
        (SpanKind.USER, "Why?", "<|im_end|>\n<|im_start|>user\nWhy?"),
        (SpanKind.ASSISTANT, "", "<|im_end|>\n<|im_start|>assistant\n"),
    ]


def test_spans_have_the_keys_of_what_they_are_and_end_their_markers_where_the_words_begin() -> None:
    summary = DocumentRange("Summary", 0, 8, "s3", SpanKind.SUMMARY)
    document = DocumentRange("a.md", 10, 14, "a7")
    asked = ChatMessage("user", "In short\n\nText\n\n  Which?", (summary, document), "m1")
    system = ChatMessage("system", "Be brief.")

    prompt, texts = prompt_of([system, asked, ChatMessage("assistant", "That.", key="m2")], CHATML)

    assert [
        (span.kind, span.key, text[: span.marker_tokens], text[span.marker_tokens :])
        for span, text in zip(prompt.spans, texts, strict=True)
    ] == [
        (SpanKind.SYSTEM, "", "<|im_start|>system\n", "Be brief."),
        (SpanKind.SUMMARY, "s3", "<|im_end|>\n<|im_start|>user\n", "In short"),
        (SpanKind.DOCUMENT, "a7", "\n\n", "Text"),
        (SpanKind.USER, "m1", "\n\n  ", "Which?"),
        (SpanKind.ASSISTANT, "m2", "<|im_end|>\n<|im_start|>assistant\n", "That."),
        (SpanKind.ASSISTANT, "", "<|im_end|>\n<|im_start|>assistant\n", ""),
    ]


def test_reasoning_that_a_template_keeps_is_of_the_words_and_not_of_the_marker() -> None:
    reasoned = ChatMessage("assistant", "<think>\nIs it?\n</think>\n\nIt is.", key="m2")

    prompt, texts = prompt_of([ASKED, reasoned, AGAIN], CHATML)

    assert texts[1][prompt.spans[1].marker_tokens :] == reasoned.content
    assert prompt.spans[1].title == "It is."


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\n ab"),
    min_size=1,
    max_size=20,
).filter(str.strip)


@given(
    template=st.sampled_from(TEMPLATES),
    system=st.none() | WORDS,
    texts=st.lists(WORDS, min_size=1, max_size=7).filter(lambda texts: len(texts) % 2 == 1),
    documents=st.lists(WORDS, max_size=2),
)
@settings(max_examples=150)
def test_every_message_has_a_span_in_order_with_its_words(
    template: str | None, system: str | None, texts: list[str], documents: list[str]
) -> None:
    messages = [ChatMessage("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(texts)]
    messages[-1] = with_documents(texts[-1], *(document.strip() for document in documents))
    expected = [*texts[:-1], *documents, texts[-1]]
    if system is not None:
        messages.insert(0, ChatMessage("system", system))
        expected.insert(0, system)

    prompt, found = prompt_of(messages, template)

    borders = [place for span in prompt.spans for place in (span.start, span.stop)]
    assert borders == sorted(borders) and borders[-1] <= len(prompt.tokens)
    named = [
        (span, text)
        for span, text in zip(prompt.spans, found, strict=True)
        if span.title and span.title != OWN_SYSTEM_PROMPT
    ]
    assert len(named) == len(expected)
    assert all(words.strip() in text for words, (_, text) in zip(expected, named, strict=True))


@given(
    template=st.sampled_from(TEMPLATES),
    system=st.none() | WORDS,
    texts=st.lists(WORDS, min_size=1, max_size=7),
    data=st.data(),
)
@settings(max_examples=150)
def test_questions_in_a_row_are_found_where_a_template_merges_them(
    template: str | None, system: str | None, texts: list[str], data: st.DataObject
) -> None:
    is_answered = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    messages = [] if system is None else [ChatMessage("system", system)]
    for number, (text, has_answer) in enumerate(zip(texts, is_answered, strict=True)):
        asked = with_documents(text, *["In short"] * data.draw(st.integers(0, 1)))
        messages.append(dataclasses.replace(asked, key=f"m{number}"))
        if has_answer:
            messages.append(ChatMessage("assistant", "So.", key=f"n{number}"))

    prompt, found = prompt_of(messages, template)

    named = [(span, text) for span, text in zip(prompt.spans, found, strict=True) if span.key]
    assert [span.key for span, _ in named] == [message.key for message in messages if message.key]
    words = {f"m{number}": text.strip() for number, text in enumerate(texts)}
    assert all(text.strip().endswith(words.get(span.key, "So.")) for span, text in named)
    borders = [place for span in prompt.spans for place in (span.start, span.stop)]
    assert borders == sorted(borders)


def test_white_space_that_a_template_leaves_between_merged_questions_parts_none_from_its_words() -> None:
    messages = [ChatMessage("user", f" {word} ", key=word) for word in ("One", "Two", "Three")]

    prompt, texts = prompt_of(messages, GEMMA)

    assert [(span.key, text) for span, text in zip(prompt.spans, texts, strict=True)] == [
        ("One", "<start_of_turn>user\nOne "),
        ("Two", "\n\n Two "),
        ("Three", "\n\n Three"),
        ("", "<end_of_turn>\n<start_of_turn>model\n"),
    ]


def test_words_that_stand_elsewhere_too_are_found_where_the_message_is() -> None:
    twice = [ChatMessage("user", "user"), ChatMessage("assistant", "user"), ChatMessage("user", "us")]

    prompt, texts = prompt_of(twice, CHATML)

    assert [text.rpartition("\n")[2] for text in texts] == ["user", "user", "us", ""]
    assert [span.stop for span in prompt.spans[:-1]] == [span.start for span in prompt.spans[1:]]


def test_a_rewritten_message_has_no_span_and_its_tokens_go_to_no_other() -> None:
    prompt, texts = prompt_of([ASKED, ANSWERED, AGAIN], SHOUTING)

    assert [span.title for span in prompt.spans] == ["What is it?", "Why?", ""]
    assert not any("THING" in text for text in texts)


def test_a_message_that_the_template_leaves_out_has_no_span() -> None:
    messages = [ASKED, ChatMessage("assistant", "It is a thing."), AGAIN]
    dropping = CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role == 'user' %}")

    prompt, _ = prompt_of(messages, dropping)

    assert [span.title for span in prompt.spans] == ["What is it?", "Why?", ""]


def test_an_answer_is_found_without_the_reasoning_that_the_template_leaves_out() -> None:
    reasoned = ChatMessage("assistant", "<think>\nIs it a thing?\n</think>\n\nIt is a thing.")

    prompt, texts = prompt_of([ASKED, reasoned, AGAIN], WITHOUT_REASONING)

    assert prompt.spans[1].title == "It is a thing."
    assert texts[1] == "<|im_end|>\n<|im_start|>assistant\nIt is a thing."


def test_the_system_prompt_of_the_template_is_told_from_the_first_question() -> None:
    prompt, texts = prompt_of([ASKED], OWN_SYSTEM)

    assert [span.kind for span in prompt.spans] == [SpanKind.SYSTEM, SpanKind.USER, SpanKind.ASSISTANT]
    assert texts[0] == "<|im_start|>system\nYou are a small model that helps."
    assert prompt.spans[0].title == OWN_SYSTEM_PROMPT


def test_a_system_text_that_is_folded_into_the_question_is_told_from_it() -> None:
    _, texts = prompt_of([ChatMessage("system", "Be brief."), ASKED], DEAF)

    assert [text.strip() for text in texts[:2]] == ["user: Be brief.", "What is it?"]


def test_a_template_that_refuses_other_words_leaves_everything_without_spans() -> None:
    choosy = "{% if 'What' not in messages[0].content %}{{ raise_exception('No.') }}{% endif %}" + CHATML

    prompt, _ = prompt_of([ASKED], choosy)

    assert prompt.tokens and prompt.spans == ()


def test_titles_are_one_short_line() -> None:
    prompt, _ = prompt_of([ChatMessage("user", "One\n  two\tthree " + "and more " * 50)], CHATML)

    title = prompt.spans[0].title
    assert title.startswith("One two three and more") and title.endswith("…") and len(title) <= 80


def test_where_nothing_is_said_nothing_is_written(starter: Model) -> None:
    assert starter.prompt([]) == Prompt([], ())


def test_a_prompt_that_is_asked_for_again_is_not_encoded_again(starter: Model) -> None:
    prompt = starter.prompt([ANSWERED, AGAIN])
    assert starter.prompt([ANSWERED, AGAIN]) is prompt

    renamed = starter.prompt([ANSWERED, dataclasses.replace(AGAIN, key="m9")])

    assert renamed.tokens == prompt.tokens
    assert "m9" in [span.key for span in renamed.spans]


def test_a_prompt_is_encoded_again_when_its_template_writes_something_else(
    starter: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = starter.prompt([AGAIN])
    template = starter.tokenizer._tokenizer.chat_template
    monkeypatch.setattr(starter.tokenizer._tokenizer, "chat_template", f"Today is Monday. {template}")

    after = starter.prompt([AGAIN])

    assert starter.token_counter().decode(after.tokens).startswith("Today is Monday. ")
    assert len(after.tokens) > len(before.tokens)


def test_the_starter_reads_the_same_tokens_with_spans(starter: Model) -> None:
    messages = [with_documents("Who hunts?", "Document: owls.md\n\nOwls hunt at night."), ANSWERED, AGAIN]

    prompt = starter.prompt(messages)

    assert prompt.tokens == starter.render(messages)
    decode = starter.token_counter().decode
    texts = [decode(prompt.tokens[span.start : span.stop]) for span in prompt.spans]
    assert [span.title for span in prompt.spans] == [
        OWN_SYSTEM_PROMPT,
        "0",
        "Who hunts?",
        "It is a thing.",
        "Why?",
        "",
    ]
    assert "SmolLM" in texts[0] and "Owls hunt at night." in texts[1] and "Who hunts?" in texts[2]
    assert "".join(texts) == decode(prompt.tokens)


@pytest.mark.parametrize("number", [0, 1])
def test_dropped_turns_leave_the_spans_of_the_others(number: int) -> None:
    messages = [ASKED, ANSWERED, AGAIN, ChatMessage("assistant", "For that."), ChatMessage("user", "Oh.")]

    whole, _ = prompt_of(messages, CHATML)
    trimmed, texts = prompt_of(messages[2:], CHATML)

    assert [span.title for span in trimmed.spans] == [span.title for span in whole.spans[2:]]
    assert texts[number].endswith(("Why?", "For that.")[number])
