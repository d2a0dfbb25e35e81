"""In which language and in which words a summary is asked for."""

from __future__ import annotations

import pytest

from app.document_prompt import chat_message, document_passage, summary_passage
from app.documents.document import Document
from app.ledger.summary_prompts import asking_messages, language_of, languages, summary_instruction
from app.ledger.summary_request import SummaryRequest, most_summary_tokens
from engine.kv.precision import KVSpec
from engine.model import ChatMessage

GERMAN = "Wir treffen uns am Montag um drei, weil die anderen erst dann kommen. Ist das für dich in Ordnung?"


def request(*messages: ChatMessage, first: int = 0, num_turns: int = 1) -> SummaryRequest:
    return SummaryRequest(messages, first, ("m1",), num_turns, 400, KVSpec.parse("8"), 7)


def document(title: str, text: str) -> Document:
    return Document(title=title, source=f"/tmp/{title}", kind="text", text=text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We meet on Monday at three, because the others come then. Is that fine with you?", "English"),
        (GERMAN, "German"),
        ("Nous nous voyons lundi à trois heures, parce que les autres ne sont pas là avant.", "French"),
        ("Nos vemos el lunes a las tres, porque los otros no llegan antes. ¿Está bien para ti?", "Spanish"),
        ("Ci vediamo lunedì alle tre, perché gli altri non arrivano prima. Va bene per te?", "Italian"),
        ("Vamos nos ver na segunda às três, porque os outros não chegam antes. Está bem?", "Portuguese"),
        ("We zien elkaar maandag om drie uur, omdat de anderen niet eerder zijn. Is dat goed?", "Dutch"),
        ("Spotkamy się w poniedziałek o trzeciej, bo inni nie są wcześniej. Czy to jest dobre?", "Polish"),
        ("Мы встречаемся в понедельник в три часа. Тебе это подходит?", "Russian"),
        ("نلتقي يوم الاثنين في الساعة الثالثة.", "Arabic"),
        ("月曜日の三時に会いましょう。", "Japanese"),
        ("我们星期一三点见面，可以吗？", "Chinese"),
        ("월요일 세 시에 만나요. 괜찮아요?", "Korean"),
        ("x = [i ** 2 for i in range(10)]", "English"),
        ("Ми зустрічаємося в понеділок о третій, бо інші не можуть раніше. Це тобі підходить?", "Ukrainian"),
        ("Pazartesi saat üçte buluşuyoruz, çünkü diğerleri daha önce gelemiyor.", "any other"),
        ("ما دوشنبه ساعت سه همدیگر را می‌بینیم، چون دیگران زودتر نمی‌آیند.", "any other"),
        ("12, 14, 16", "any other"),
        ("", "any other"),
    ],
)  # fmt: skip
def test_a_language_is_told_by_its_letters_and_function_words(text: str, name: str) -> None:
    assert language_of(text).name == name


def test_a_conversation_is_asked_for_in_its_language_even_about_an_english_document() -> None:
    english = document(
        "a.txt", "The owl hunts at night and it is one of the best hunters of the woods. " * 40
    )
    asking = chat_message("user", GERMAN, [document_passage(english, "a1")], "m1")
    answer = ChatMessage("assistant", "Das ist in Ordnung, wir sehen uns dann am Montag.", key="m2")
    assert summary_instruction(request(asking, answer), 60).startswith("Fasse das bisherige Gespräch")
    alone = chat_message("user", "OK?", [document_passage(document("a.txt", GERMAN), "a1")], "m1")
    assert summary_instruction(request(alone), 60).startswith("Fasse das bisherige Gespräch")


def test_a_document_is_named_and_asked_for_in_its_own_language() -> None:
    message = chat_message("user", "", [document_passage(document("Plan $1.txt", GERMAN), "a1")], "m1")
    instruction = summary_instruction(request(message, num_turns=0), 60)
    assert instruction.startswith("Fasse das Dokument „Plan $1.txt“ in höchstens 2 Sätzen")


def test_a_run_in_the_middle_is_told_by_its_first_words() -> None:
    system = ChatMessage("system", "Be brief.")
    turns = [
        ChatMessage("user", "What is an owl, and is it a bird or not?"),
        ChatMessage("assistant", "A bird."),
    ]
    assert "so far" in summary_instruction(request(system, *turns, first=1), 60)
    later = [
        ChatMessage("user", "And what is\na bat in all of this, then?"),
        ChatMessage("assistant", "A mammal."),
    ]
    assert "“And what is a bat in all of”" in summary_instruction(
        request(system, *turns, *later, first=3), 60
    )


def test_every_language_has_all_forms_with_what_they_name() -> None:
    assert len({language.name for language in languages()}) == len(languages()) >= 15
    assert not (languages()[-1].words or languages()[-1].letters)
    for language in languages():
        assert not (language.words and language.letters)
        assert "$words" in language.rest and "$title" in language.document
        assert all("$count" in form for form in (language.conversation, language.rest, language.document))


def test_the_instruction_follows_an_answer_as_a_question_of_its_own() -> None:
    turns = (ChatMessage("user", "Why?", key="m1"), ChatMessage("assistant", "So.", key="m2"))
    assert asking_messages(request(*turns), "Sum up.") == (*turns, ChatMessage("user", "Sum up."))


def test_behind_a_users_message_the_instruction_goes_into_it_and_leaves_the_beginning_as_it_was() -> None:
    message = chat_message("user", "", [document_passage(document("a.txt", "Owls."), "a1")], "m1")
    (asking,) = asking_messages(request(message, num_turns=0), "Sum up.")
    assert asking.content == f"{message.content}\n\nSum up."
    assert asking.documents == message.documents and asking.key == ""


def test_the_source_is_the_words_of_documents_summaries_and_speakers_without_what_is_around_them() -> None:
    summary = summary_passage("Summary of 2 turns", "the earlier conversation", "Owls are birds.", "s1")
    asking = chat_message(
        "user", "And bats?", [summary, document_passage(document("a.txt", "Bats fly."), "a1")]
    )
    answer = ChatMessage("assistant", "<think>Well, bats.</think>\n\nMammals.")
    parts = request(ChatMessage("system", "Be brief."), asking, answer, first=1).parts
    assert [(part.speaker, part.text) for part in parts] == [
        ("", "Owls are birds."),
        ("a.txt", "Bats fly."),
        ("User", "And bats?"),
        ("Assistant", "Mammals."),
    ]


@pytest.mark.parametrize(
    ("source_tokens", "most"),
    [(0, 0), (10, 10), (24, 24), (100, 24), (160, 24), (166, 24), (167, 25), (1000, 150)],
)
def test_a_summary_may_have_15_percent_and_of_little_text_a_sentence(source_tokens: int, most: int) -> None:
    assert most_summary_tokens(source_tokens) == most
