"""What counts as a summary; the words of the starter model are real ones."""

from __future__ import annotations

import pytest

from app.ledger.summary_check import Flaw, finished, flaw_of, forgets, repeats, shared_share
from app.ledger.summary_request import PartKind, SourcePart

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


PARTS = (
    SourcePart(
        "User", "My dog Bramble was born on 14 May 2019. My sister Anna lives in Lisbon.", PartKind.USER
    ),
    SourcePart("Assistant", "How nice! They say that the people of Lisbon love dogs.", PartKind.ANSWER),
    SourcePart("User", "My budget for a bicycle is 730 euros. How does a bicycle work?", PartKind.USER),
    SourcePart(
        "Assistant", "It has two wheels, and you ride it. Karl Drais made one in 1817.", PartKind.ANSWER
    ),
)
YARDSTICK = "User: My dog Bramble was born on 14 May 2019.\nUser: My budget for a bicycle is 730 euros."


def test_a_summary_that_keeps_none_of_the_facts_that_an_extract_keeps_is_told_apart() -> None:
    vague = "Your tale of the bicycle is fascinating: it has wheels, and you ride it."
    assert flaw_of(vague, " ".join(part.text for part in PARTS), ASKED) is None
    assert forgets(vague, YARDSTICK, PARTS) is Flaw.FORGETFUL


def test_a_summary_with_about_the_facts_of_an_extract_in_other_words_passes() -> None:
    good = "The dog Bramble is from 14 May 2019, sister Anna is in Lisbon, and 730 euros go to a bicycle."
    assert forgets(good, YARDSTICK, PARTS) is None
    assert forgets("Bramble: 14.05.2019; a bicycle for 730 euros.", YARDSTICK, PARTS) is None


def test_what_only_an_answer_has_counts_less_than_what_the_user_told() -> None:
    """Three facts of the user's against three of an answer's: the same number, half the worth."""
    told = "Bramble was born on 14 in 2019."
    answered = "Karl Drais made one in 1817."
    assert forgets(told, YARDSTICK, PARTS) is None
    assert forgets(answered, YARDSTICK, PARTS) is Flaw.FORGETFUL


def test_a_text_without_numbers_and_names_may_be_summarized_in_any_words() -> None:
    parts = (
        SourcePart("User", "Tell me why owls hunt at night.", PartKind.USER),
        SourcePart("Assistant", "They see well in the dark, and mice come out then.", PartKind.ANSWER),
    )
    assert forgets("Owls see in the dark.", "User: Tell me why owls hunt at night.", parts) is None


def test_one_name_alone_is_no_yardstick() -> None:
    parts = (SourcePart("User", "Tell me why the owls of Athens hunt at night.", PartKind.USER),)
    assert forgets("Owls see in the dark.", "User: Tell me why the owls of Athens hunt.", parts) is None


def test_a_summary_of_a_summary_has_to_keep_facts_of_the_earlier_one() -> None:
    earlier = SourcePart("User", "My budget is 730 euros, says Anna in Lisbon.", PartKind.EARLIER)
    newest = SourcePart("User", "I leave for Rome with Paul on 3 June 2021 at 9:30.", PartKind.USER)
    extract = (
        "User: My budget is 730 euros, says Anna in Lisbon.\nUser: I leave for Rome with Paul on 3 June 2021."
    )
    only_new = "The user leaves for Rome with Paul on 3 June 2021 at 9:30."
    assert forgets(only_new, extract, (earlier, newest)) is Flaw.FORGOT_EARLIER
    assert forgets(f"{only_new} Anna of Lisbon has 730 euros.", extract, (earlier, newest)) is None


@pytest.mark.parametrize("end", [":", "：", ":**", ":\n\n"])
def test_a_text_that_ends_with_a_colon_is_not_finished(end: str) -> None:
    begun = f"Here are details of the journey{end}"
    assert finished(begun, True, 100, num_words) == ""
    assert finished(f"One is done. {begun}", True, 100, num_words) == "One is done."
    assert finished(f"One is done. {begun}\n- a wheel", True, 100, num_words).endswith("- a wheel")
