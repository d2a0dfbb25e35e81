from __future__ import annotations

from app.long_talk.facts import find_facts

EXCERPTS = [
    "The bridge over the Tamar was opened by the king in the year 1859 after long delays. "
    "It rests on piers of granite that were built far from the shore. Short one.",
    "Its designer was ill and crossed it only once, lying on a wagon drawn by Gooch himself. "
    "The bridge over the river is still used by trains today, as Brunel had wished it.",
    "Since then the trains of 42 lines have passed here, as the records of Brunel tell us.",
]


def test_facts_are_numbers_and_names_of_whole_sentences() -> None:
    facts = find_facts(EXCERPTS, 3)
    assert [(fact.excerpts, fact.answer) for fact in facts] == [
        ((0,), "1859"),
        ((1,), "Gooch"),
        ((1, 2), "Brunel"),
        ((2,), "42"),
    ]
    assert all(fact.sentence in EXCERPTS[fact.excerpts[0]] for fact in facts)


def test_a_question_gives_the_beginning_and_never_the_answer() -> None:
    for fact in find_facts(EXCERPTS, 3):
        assert not fact.is_in(fact.question)
        assert fact.question.endswith(fact.sentence[: fact.sentence.index(fact.answer)].rstrip())


def test_an_answer_counts_as_a_whole_word_in_any_case() -> None:
    year = find_facts(EXCERPTS, 1)[0]
    assert year.is_in("It was opened in 1859, they say.")
    assert not year.is_in("It cost 18590 pounds.") and not year.is_in("")
    name = find_facts(EXCERPTS, 1)[1]
    assert name.is_in("by GOOCH.")


def test_so_many_facts_are_taken_of_each_excerpt_at_most() -> None:
    assert [fact.excerpts[0] for fact in find_facts(EXCERPTS, 1)] == [0, 1, 2]
    assert find_facts(EXCERPTS, 0) == ()


def test_what_is_no_name_or_only_refers_to_something_is_no_fact() -> None:
    listed = "Ann Bell, Carl Dorn, Eva Falk and Gert Holm wrote 1999 Ines Jung and Karl Lund too."
    for text in (
        "We know how the Water rose so far, and that water took all of the houses with it.",
        "How the rest of it was found is told at length in Section 12 and below Figure 34.",
        "In 1859 the bridge was opened after a long time of waiting for it.",
        "It has been told by many others before that it was so [12] and so (1859).",
        listed,
    ):
        assert find_facts([text], 3) == (), text
