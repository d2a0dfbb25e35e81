from __future__ import annotations

from collections import Counter

import pytest

from app.document_bench.facts import FactKind
from app.document_bench.handbook import handbook
from app.documents.places import Places
from engine.errors import OctavoError


def count(text: str) -> int:
    return len(text.split())


def test_a_handbook_has_about_the_tokens_and_all_facts_of_each_kind_spread_over_it() -> None:
    made = handbook(20_000, 40, count)
    assert 20_000 <= count(made.text) < 23_000
    assert Counter(fact.kind for fact in made.facts) == dict.fromkeys(FactKind, 10)
    tenths = Counter(10 * fact.start // len(made.text) for fact in made.facts)
    assert min(tenths[tenth] for tenth in range(10)) >= 2


def test_each_fact_stands_where_it_says_and_its_answer_nowhere_else() -> None:
    made = handbook(20_000, 40, count)
    for fact in made.facts:
        assert fact.answer in made.text[fact.start : fact.stop]
        assert made.text[fact.start : fact.stop].endswith(".")
        assert made.text.count(fact.answer) == 1
        assert fact.is_told_by(fact.answer)
        assert not any(fact.is_told_by(wrong) for wrong in fact.wrong)


def test_wrong_answers_stand_in_the_section_of_a_fact() -> None:
    made = handbook(20_000, 40, count)
    for fact in made.facts:
        start = made.text.rindex("\n## ", 0, fact.start)
        stop = made.text.find("\n## ", fact.start)
        section = made.text[start : stop if stop >= 0 else None]
        assert len(fact.wrong) >= 2
        assert all(wrong in section or fact.kind is FactKind.CODE for wrong in fact.wrong)
        assert sum(wrong in section for wrong in fact.wrong) >= 2


def test_no_question_is_asked_twice_and_each_names_the_place_of_its_fact() -> None:
    made = handbook(20_000, 40, count)
    assert len({fact.question for fact in made.facts}) == 40
    for fact in made.facts:
        sentence = set(made.text[fact.start : fact.stop].replace(",", "").rstrip(".").split())
        assert len(sentence & set(fact.question.rstrip("?").replace(",", "").split())) >= 3


def test_the_same_numbers_make_the_same_handbook_in_whole_words() -> None:
    made = handbook(6_000, 8, count)
    assert made == handbook(6_000, 8, count)
    assert "$" not in made.text
    assert len(Places.of(made.text, "markdown").headings) > 10


def test_more_facts_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(OctavoError, match="has room for 2 facts, not for 9"):
        handbook(1_000, 9, count)
    with pytest.raises(OctavoError, match="Ask for a longer one or for fewer facts"):
        handbook(200_000, 200, count)
    assert len(handbook(60_000, 88, count).facts) == 88
