"""What counts as a summary; the words of the starter model are real ones."""

from __future__ import annotations

import pytest

from app.ledger.summary_check import Flaw, finished, flaw_of, repeats, shared_share

SOURCE = (
    "Petra and Jonas want to travel to Portugal from 12 May to 19 May 2025. Their budget is 2,400 euros. "
    "They stay four nights in Lisbon at Hotel Lisboa Tejo for 110 euros a night, and three in Porto at Guest "
    "House Douro for 95 euros. Jonas cannot walk far because of his knee. Petra is allergic to shellfish. "
    "Whether a doctor near the hotel is needed is still open."
)
ASKED = "Summarize the conversation so far. Keep names, numbers, dates, decisions and open questions."
GOOD = (
    "Petra and Jonas travel to Lisbon (Hotel Lisboa Tejo, 110 euros a night) and Porto (Guest House Douro, "
    "95 euros) from 12 to 19 May with 2,400 euros. Open: a doctor near the hotel."
)


def num_words(text: str) -> int:
    return len(text.split())


def test_a_summary_in_the_words_of_its_text_passes() -> None:
    assert flaw_of(GOOD, SOURCE, ASKED) is None
    assert flaw_of("- Petra: allergic to shellfish\n- Jonas: knee, cannot walk far", SOURCE, ASKED) is None


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("", Flaw.EMPTY),
        ("...\n- \n**", Flaw.EMPTY),
        ("They stay in Lisbon at the hotel. " * 9, Flaw.REPEATED),
        (ASKED, Flaw.ECHOED),
        (f"{ASKED} Petra travels.", Flaw.ECHOED),
        ("Petra et Jonas partent au printemps; ils dorment dans une auberge, puis ailleurs.", Flaw.FOREIGN),
        ("The Apache project is a collaborative effort to create a new and improved version.", Flaw.FOREIGN),
        ("佩特拉和约纳斯去葡萄牙旅行。", Flaw.FOREIGN),
        ("Petra and Jonas travel to Portugal in 1984 and to Porto in 2017.", Flaw.INVENTED),
    ],
)  # fmt: skip
def test_what_is_no_summary_of_the_text_is_told_apart(text: str, flaw: Flaw) -> None:
    assert flaw_of(text, SOURCE, ASKED) is flaw


@pytest.mark.parametrize("number", ["12500", "12.500", "12\u202f500", "١٢٥٠٠"])
def test_a_number_that_is_written_another_way_is_not_invented(number: str) -> None:
    source = "The new bridge over the river costs 12,500 pounds."
    assert flaw_of(f"The new bridge costs {number} pounds.", source, ASKED) is None
    assert flaw_of("The new bridge costs 12,501 pounds.", source, ASKED) is Flaw.INVENTED


def test_a_sum_or_another_form_of_a_date_is_no_invention() -> None:
    assert flaw_of(f"{GOOD} The nights cost 725 euros, from 12.05.2025 on.", SOURCE, ASKED) is None


def test_other_endings_of_a_word_count_as_the_word() -> None:
    assert shared_share("Traveling, traveler: allergies!", SOURCE) == 1.0


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    source = "会议决定从七月一日起把会费定为六十八欧元，由阿伊丁女士写申请。"
    assert flaw_of("会费从七月一日起为六十八欧元，阿伊丁女士写申请。", source, "请简短总结以上对话。") is None
    assert flaw_of("猫在花园里睡觉，天气很好。", source, "请简短总结以上对话。") is Flaw.FOREIGN


@pytest.mark.parametrize(
    "text",
    [
        # The starter on the GPL and on a paper.
        "The Software must be made available for anyone to use, modify, and distribute.\n" * 4,
        "\n".join(f"{number}. Implementation of trace-based compilation" for number in range(8, 20)),
        # The starter on the MPL: one sentence comes again in a text that is otherwise new.
        "Sections 3.1 and 3.2 are conditions of the licenses granted in Section 2.1. The Software is not a "
        "combination with a work governed by a Secondary License. The changes include a new section, "
        "which allows for more rights.\n\nThe Software is not a combination with a work governed\nby a "
        "Secondary License.",
        "ha ha ha ha ha ha ha ha ha ha ha ha",
    ],
)
def test_going_round_in_circles_is_seen(text: str) -> None:
    assert repeats(text)


def test_a_text_with_turns_of_phrase_that_come_again_does_not_repeat_itself() -> None:
    assert not repeats(SOURCE)
    assert not repeats("No, no, no, no!")


def test_a_text_that_was_not_ended_or_is_too_long_is_cut_behind_a_sentence() -> None:
    text = "One is done here. Two is done. Three is not do"
    assert finished(text, False, 100, num_words) == "One is done here. Two is done."
    assert finished(text, True, 100, num_words) == text
    assert finished(text, True, 6, num_words) == "One is done here."
    assert finished(text, False, 3, num_words) == ""
    assert finished("One is done here. Two is done.", True, 7, num_words) == "One is done here. Two is done."
