from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.documents.places import Heading, Places
from app.lookup.units import units_of

SENTENCE = "The harbour master counts the boats every evening before the lamps are lit. "


@given(st.text(alphabet="ab .\n|#1漢字。", max_size=4000))
def test_pieces_hold_all_of_a_text_but_white_space_in_its_order(text: str) -> None:
    units = units_of(text, Places.of(text, "markdown").headings)
    end = 0
    for unit in units:
        assert not text[end : unit.start].strip()
        assert unit.start < unit.stop <= unit.start + 1200
        end = unit.stop
    assert not text[end:].strip()


def test_a_piece_ends_before_a_heading_and_is_known_by_all_that_it_stands_below() -> None:
    body = SENTENCE * 5
    text = f"# Harbour\n\n{body}\n\n## Boats\n\n{body}\n\n# Lamps\n\n{body}"
    units = units_of(text, Places.of(text, "markdown").headings)
    assert [unit.heading for unit in units] == ["Harbour", "Harbour / Boats", "Lamps"]
    assert [text[unit.start : unit.start + 8] for unit in units] == ["# Harbou", "## Boats", "# Lamps\n"]


def test_a_paragraph_that_is_too_long_ends_behind_a_sentence() -> None:
    text = SENTENCE * 60
    units = units_of(text, ())
    assert len(units) > 4
    assert all(text[unit.start : unit.stop].strip().endswith("lit.") for unit in units)


def test_pieces_of_a_script_without_blanks_are_shorter() -> None:
    text = "合同自签署之日起生效，有效期三年，甲方应在每年一月支付费用。" * 100
    units = units_of(text, ())
    assert max(unit.stop - unit.start for unit in units) <= 450
    assert all(text[unit.stop - 1] == "。" for unit in units)


def test_headings_of_the_same_level_do_not_stand_below_each_other() -> None:
    headings = [Heading(0, 2, "One"), Heading(400, 2, "Two")]
    assert [unit.heading for unit in units_of("a" * 400 + "b" * 400, headings)] == ["One", "Two"]
