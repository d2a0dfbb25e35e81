from __future__ import annotations

import pytest

from app.sources.citations import CitableNote, citations, cited

NOTES = (
    CitableNote(1, "The pump was installed in 1998.", "The main pump was put in by Anna Kowalski in 1998."),
    CitableNote(2, "Seals: every 18 months", "The seal must be changed by Mr. Ortega every 18 months."),
    CitableNote(3, "", "Nobody may open the housing of the pump while the crimson lantern is lit."),
)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("It is so [3].", [3]),
        ("It is so [1, 4] and so [2-5][7].", [1, 4, 2, 5, 7]),
        ("そうです【2】。", [2]),
        ("No [text], no [3](http://example.org), no ![4](x), no `a[5]`.", []),
        ("```\nb[6]\n```", []),
        ("```\nb[6]", []),
        ("In [1998a] and [].", []),
    ],
)
def test_numbers_in_brackets_are_citations(answer: str, numbers: list[int]) -> None:
    found = citations(answer)
    assert [each.number for each in found] == numbers
    assert all(answer[each.start : each.stop] == str(each.number) for each in found)


def test_what_is_cited_by_number_is_what_was_cited_and_nothing_else() -> None:
    assert cited("Ortega changes it every 18 months [1].", NOTES) == {1}


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("It was installed in 1998.", {1}),
        ("By Kowalski.", {1}),
        ("Ortega does that. Wait until the crimson lantern is out.", {2, 3}),
        ("It was 1998 [8].", {1}),
        ("I do not know.", set()),
        ("The pump.", set()),
        ("", set()),
    ],
)
def test_without_numbers_it_is_the_notes_whose_facts_the_answer_tells(answer: str, numbers: set[int]) -> None:
    assert cited(answer, NOTES) == numbers


def test_nothing_is_cited_of_no_notes() -> None:
    assert cited("It was 1998 [1].", ()) == frozenset()
