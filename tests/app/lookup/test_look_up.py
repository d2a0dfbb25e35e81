from __future__ import annotations

import time
import unicodedata

import pytest

from app.documents.places import Places
from app.lookup.look_up import LookUp, Passage, SearchedText
from engine.bench.prose import TEXT, all_texts
from engine.cancel import CancelToken
from engine.errors import Cancelled

BETWEEN = "\n\n" + TEXT[:6000] + "\n\n"
PUMP = "The main pump was installed in 1998 by Anna Kowalski, who also wrote its manual."
SEAL = "Every seal of the type X-200 has to be replaced after 1,250 hours."


def count_words(text: str) -> int:
    return len(text.split())


def look(text: str, question: str, budget: int = 400) -> list[str]:
    found = LookUp([SearchedText(text, Places.of(text, "markdown"))]).passages(question, budget, count_words)
    return [text[passage.start : passage.stop] for passage in found]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("When was the pump installed?", PUMP),
        ("who INSTALLED the pumps", PUMP),
        ("What did Anna Kowalski write?", PUMP),
        ("How often is the X-200 seal replaced?", SEAL),
        ("What happens after 1250 hours?", SEAL),
        ("What happens after 1\u202f250 hours?", SEAL),
    ],
)
def test_the_passage_that_has_the_words_of_a_question_is_found(question: str, fact: str) -> None:
    text = TEXT[:9000] + f"\n\n{PUMP}" + BETWEEN + SEAL + BETWEEN
    assert fact in look(text, question)[0]


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("Die Kündigungsfrist beträgt drei Monate zum Quartalsende.", "Wie lang ist die Kündigungsfrist?"),
        ("La garantie dure vingt-quatre mois à compter de l'achat.", "Quelle est la durée de la garantie ?"),
        ("Срок гарантии составляет два года со дня покупки.", "Какой срок гарантии?"),
        ("Kaucja wynosi trzy tysiące złotych i jest zwrotna.", "Ile wynosi kaucja?"),
        ("مدة الضمان سنتان من تاريخ الشراء.", "ما هي مدة ضمان المنتج؟"),
        ("押金为五千元，由乙方在签约时支付。", "押金是多少？"),
        ("保証期間は購入日から二年間とします。", "保証期間はどれくらいですか？"),
        ("보증 기간은 구입일로부터 이 년입니다.", "보증 기간이 얼마나 되나요?"),
        ("ประกันมีอายุสองปีนับจากวันที่ซื้อ", "ประกันมีอายุกี่ปี"),
        ("वारंटी की अवधि दो वर्ष है।", "वारंटी कितने वर्ष की है?"),
    ],
)
def test_passages_are_found_in_any_script_and_with_other_endings(fact: str, question: str) -> None:
    assert fact in look(BETWEEN + fact + BETWEEN, question)[0]


def test_accents_and_widths_and_compositions_do_not_count() -> None:
    fact = unicodedata.normalize("NFD", "Le café ÉLYSÉE ouvre à ２２ heures.")
    assert fact in look(BETWEEN + fact + BETWEEN, "Quand ouvre le cafe Elysee ?")[0]
    assert fact in look(BETWEEN + fact + BETWEEN, "Qu'ouvre à 22 heures ?")[0]


@pytest.mark.parametrize(
    "question",
    ["Who is Martha Kent?", "What is the capital of Mongolia?", "量子纠缠的原理是什么？", "What is it?", ""],
)
def test_nothing_is_found_where_nothing_is_relevant(question: str) -> None:
    text = "\n\n".join(all_texts().values())
    assert "capital" in text.lower()
    assert look(text, question) == []


def test_words_of_headings_lead_to_what_stands_below_them() -> None:
    body = "It is checked by the night shift. " * 12
    text = f"{TEXT[:3000]}\n\n# Boilers\n\n{body}\n\n# Cranes\n\n{body}\n\n# Lamps\n\n{TEXT[3000:6000]}"
    found = look(text, "Tell me about the cranes.")
    assert len(found) == 1 and found[0].startswith("# Cranes") and "Lamps" not in found[0]


def test_all_of_a_long_section_is_found_by_its_heading() -> None:
    body = "It is checked by the night shift, and counted by the foreman of the yard. " * 40
    text = f"{TEXT[:3000]}\n\n# Cranes\n\n{body}\n\n# Lamps\n\n{TEXT[3000:6000]}"
    [found] = look(text, "Tell me about the cranes.", 2000)
    assert len(found) > 2400


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Who roofed it?", "A new roof was paid for by the guild."),
        ("Is smuggling a problem?", "Two smugglers were seen in May."),
        ("Gibt es Kündigungen?", "Eine Kündigung ist jederzeit möglich."),
        ("Что сказано о гарантиях?", "Гарантия действует два года."),
    ],
)
def test_a_word_is_found_with_another_ending(question: str, fact: str) -> None:
    assert fact in look(BETWEEN + fact + BETWEEN, question)[0]


def test_a_name_is_not_taken_for_one_that_begins_alike() -> None:
    text = BETWEEN + "The market is on Martinmas." + BETWEEN
    assert look(text, "Where is Martha?") == []


def test_passages_come_in_the_order_of_the_text_within_the_budget_and_the_best_fit_first() -> None:
    partly = "A pump is a machine. " + TEXT[6000:6700]
    text = partly + BETWEEN + PUMP + BETWEEN + "The pump installed by Anna Kowalski is blue." + BETWEEN
    found = LookUp([SearchedText(text, Places.of(text, "text"))]).passages(
        "Which pump did Anna Kowalski install?", 600, count_words
    )
    assert [passage.start for passage in found] == sorted(passage.start for passage in found)
    assert len(found) >= 2
    narrow = look(text, "Which pump did Anna Kowalski install?", 60)
    assert sum(map(count_words, narrow)) <= 60 and "Anna Kowalski" in narrow[0]


def test_of_equal_passages_the_first_one_is_taken() -> None:
    text = PUMP + BETWEEN + PUMP + BETWEEN + PUMP
    lookup = LookUp([SearchedText(text, Places.of(text, "text"))])
    [found] = lookup.passages("When was the pump installed?", count_words(PUMP), count_words)
    assert found.start == 0


def test_passages_beside_each_other_become_one() -> None:
    text = TEXT[:4000] + "\n\n" + f"{PUMP} " * 30 + "\n\n" + TEXT[4000:8000]
    found = LookUp([SearchedText(text, Places.of(text, "text"))]).passages(
        "When was the pump installed?", 2000, count_words
    )
    assert len(found) == 1 and found[0].stop - found[0].start > 1300


@pytest.mark.parametrize(
    "written", ["1234.50", "1,234.50", "1.234,50", "1\u00a0234,50", "1'234.50", "1234,50"]
)
@pytest.mark.parametrize("asked", ["1234.50", "1,234.50", "1.234,50"])
def test_an_amount_is_found_however_it_is_written(written: str, asked: str) -> None:
    fact = f"The guild paid {written} in May."
    assert fact in look(BETWEEN + fact + BETWEEN, f"What was {asked} for?")[0]


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("Die Kündigungsfrist beträgt drei Monate.", "Wie lang ist die Frist?"),
        ("Die Bearbeitungsgebühren betragen 20 Euro.", "Welche Gebühr gibt es?"),
        ("De opzegtermijn is drie maanden.", "Hoe lang is de termijn?"),
    ],
)
def test_a_word_is_found_within_a_compound(fact: str, question: str) -> None:
    assert fact in look(BETWEEN + fact + BETWEEN, question)[0]


def test_a_word_that_stands_alone_is_not_looked_for_within_others() -> None:
    alone, within = "Eine Frist gibt es nicht.", "Die Kündigungsfrist beträgt drei Monate."
    [found] = look(BETWEEN + within + BETWEEN + alone + BETWEEN, "Wie lang ist die Frist?")
    assert alone in found and within not in found


def test_what_is_too_long_for_the_budget_is_cut_around_what_matches() -> None:
    other = "The yard is swept on Mondays and the gate is oiled in spring. "
    [found] = look(other * 8 + PUMP + " " + other * 8, "When was the pump installed?", 30)
    assert found.startswith(PUMP) and count_words(found) <= 30
    [found] = look(other * 3 + PUMP + " " + other * 8, "When was the pump installed?", 80)
    assert found.startswith("The yard") and PUMP in found and count_words(found) <= 80
    assert f" {found} " in f" {other * 3}{PUMP} {other * 8}"


@pytest.mark.parametrize(
    ("other", "fact", "question"),
    [
        ("这一段讲的是天气和花园。", "合同的违约金为三万元。", "违约金是多少？"),
        ("この段落は天気の話です。", "解約手数料は五千円です。", "解約手数料はいくらですか？"),
        ("ข้อความนี้เกี่ยวกับสวน", "ค่าปรับคือสามหมื่นบาท", "ค่าปรับเท่าไร"),
        ("هذا نص عادي عن الطقس. ", "غرامة التأخير ألف دينار.", "ما هي الغرامة على التأخير؟"),
        ("A row of numbers is 17 and 18. ", "Paid: 1,250.75 in all.", "What is 1250.75?"),
        ("Il fait beau dans le jardin. ", "Le café Élysée est fermé.", "Ou est le cafe Elysee ?"),
    ],
)
def test_what_matches_is_in_the_cut_in_any_script(other: str, fact: str, question: str) -> None:
    text = other * 9 + fact + other * 5
    found = LookUp([SearchedText(text, Places.of(text, "text"))]).passages(question, 50, len)
    assert fact in text[found[0].start : found[0].stop]
    assert sum(each.stop - each.start for each in found) <= 50


def test_a_passage_that_only_its_heading_leads_to_is_cut_from_its_beginning() -> None:
    text = f"{TEXT[:3000]}\n\n# Cranes\n\n" + "It is checked by the night shift of the yard. " * 20
    assert look(text, "Tell me about the cranes.", 9)[0].startswith("# Cranes")


def test_passages_lie_where_their_words_lie() -> None:
    text = "𝒳 ﬁ 　\r\n" + BETWEEN + PUMP + "\n"
    [found] = LookUp([SearchedText(text, Places.of(text, "text"))]).passages(
        "Who is Kowalski?", 400, count_words
    )
    assert isinstance(found, Passage) and found.score > 0
    assert text[found.start : found.stop].endswith(PUMP)


def test_a_megabyte_is_indexed_in_half_a_second_and_asked_in_far_less() -> None:
    text = "\n\n".join(all_texts().values())
    text = (text * 9)[:1_000_000]
    places = Places.of(text, "text")
    started_s = time.process_time()
    lookup = LookUp([SearchedText(text, places)])
    assert time.process_time() - started_s < 0.5
    started_s = time.process_time()
    lookup.passages("How old must the President be?", 1000, count_words)
    assert time.process_time() - started_s < 0.2


def test_making_an_index_can_be_stopped() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        LookUp([SearchedText(TEXT, Places.of(TEXT, "text"))], cancel)


def searched(**texts: str) -> list[SearchedText]:
    return [SearchedText(text, Places.of(text, "code"), title) for title, text in texts.items()]


def test_the_best_passages_of_several_texts_are_found_wherever_they_are() -> None:
    texts = searched(
        first="The pump stands in the hall. " * 30,
        second="The lighthouse keeper counts ships.",
        third="The pump of the lighthouse was installed in 1931 by Edith Marlow.",
    )
    found = LookUp(texts).passages("Who installed the pump of the lighthouse?", 40, count_words)
    best = max(found, key=lambda passage: passage.score)
    assert (best.index, best.start, best.stop) == (2, 0, len(texts[2].text))
    assert sum(count_words(texts[each.index].text[each.start : each.stop]) for each in found) <= 40


def test_a_passage_never_goes_on_in_the_next_text() -> None:
    found = LookUp(searched(a="The owl hunts voles.", b="The owl hunts mice.")).passages(
        "What does the owl hunt?", 100, count_words
    )
    assert [(each.index, each.start, each.stop) for each in found] == [(0, 0, 20), (1, 0, 19)]


def test_passages_are_found_by_the_title_of_their_text() -> None:
    texts = [
        SearchedText(f"value = {number}", Places.of("", "code"), title)
        for number, title in enumerate(["app/lexer.py", "app/parser.py", "app/words.py"])
    ]
    (found,) = LookUp(texts).passages("What does parser.py do?", 100, count_words)
    assert found.index == 1


def test_the_first_passage_of_a_text_takes_what_stands_around_it() -> None:
    lookup = LookUp(searched(a="The owl hunts voles.", b="The owl hunts mice."))
    question = "What does the owl hunt?"
    assert len(lookup.passages(question, 27, count_words, [10, 10])) == 1
    assert len(lookup.passages(question, 28, count_words, [10, 10])) == 2
