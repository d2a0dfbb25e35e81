from __future__ import annotations

import pytest

from app.sources.evidence import best_sentences, fitting_sentence, locate

TEXT = """# Pumps

The main pump was installed by Anna Kowalski in 1998. It delivers 450 litres
a minute. Maintenance is due every six months. Keys are kept in the office.

| Part | Price |
| seal | 45 euro |

The seal must be changed by Mr. Ortega every 18 months. Nobody else may open the housing. Cranes are blue."""


def count_words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("Anna Kowalski installed it.", "The main pump was installed by Anna Kowalski in 1998."),
        ("450 litres per minute", "It delivers 450 litres\na minute."),
        ("The price of a seal: 45 €", "| Part | Price |\n| seal | 45 euro |"),
        ("Ortega changes seals every 18 months.", "The seal must be changed by Mr. Ortega every 18 months."),
        ("maintenance: six months", "Maintenance is due every six months."),
    ],
)
def test_a_note_rests_on_the_sentence_that_says_it(note: str, words: str) -> None:
    found = locate(note, TEXT)
    assert found is not None and TEXT[slice(*found)] == words


def test_a_note_on_two_sentences_in_a_row_rests_on_both() -> None:
    found = locate("Kowalski installed the pump in 1998; it gives 450 litres a minute.", TEXT)
    assert found is not None
    assert TEXT[slice(*found)].startswith("The main pump") and TEXT[slice(*found)].endswith("a minute.")


@pytest.mark.parametrize("note", ["", "Zebras graze.", "This is what it is.", "27 of 33"])
def test_a_note_that_shares_nothing_rests_on_nothing(note: str) -> None:
    assert locate(note, TEXT) is None


def test_a_note_in_chinese_rests_on_its_sentence() -> None:
    text = "合同有效期三年。押金为五千元，由乙方支付。保修期为两年。"
    found = locate("押金五千元", text)
    assert found is not None and text[slice(*found)] == "押金为五千元，由乙方支付。"


def test_the_sentences_that_fit_a_question_come_in_the_order_of_the_text() -> None:
    found = best_sentences("Who changes the seal, and when was the pump installed?", TEXT, 30, count_words)
    assert found == (
        "The main pump was installed by Anna Kowalski in 1998. … "
        "The seal must be changed by Mr. Ortega every 18 months."
    )


def test_sentences_beside_each_other_are_not_set_apart() -> None:
    found = best_sentences("How many litres does the pump of Anna Kowalski deliver?", TEXT, 40, count_words)
    assert found.startswith(
        "The main pump was installed by Anna Kowalski in 1998. It delivers 450 litres a minute."
    )


@pytest.mark.parametrize(
    ("question", "most"), [("Where do zebras graze?", 100), ("What is it?", 100), ("Which pump?", 3), ("", 9)]
)
def test_there_are_none_where_none_fits(question: str, most: int) -> None:
    assert best_sentences(question, TEXT, most, count_words) == ""


def test_they_keep_to_their_room_and_the_best_comes_first() -> None:
    found = best_sentences("Which seal does Ortega change every 18 months?", TEXT, 12, count_words)
    assert found == "The seal must be changed by Mr. Ortega every 18 months."


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Who installed the main pump?", "The main pump was installed by Anna Kowalski in 1998."),
        ("How many litres does it deliver in a minute?", "It delivers 450 litres a minute."),
        ("When must Ortega change the seal?", "The seal must be changed by Mr. Ortega every 18 months."),
        ("Who owns the pump?", ""),  # half of the words
        ("Who installed the pump of Ortega?", ""),  # a name counts as two other words do
        ("Who?", ""),
    ],
)
def test_a_sentence_fits_a_question_that_has_most_of_its_words(question: str, sentence: str) -> None:
    assert fitting_sentence(question, TEXT, 100, count_words) == sentence


def test_a_sentence_that_is_too_long_does_not_fit() -> None:
    assert fitting_sentence("Who installed the main pump?", TEXT, 9, count_words) == ""
