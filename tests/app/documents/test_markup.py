from __future__ import annotations

from app.documents import markup


def test_a_table_fills_short_rows_and_drops_empty_ones() -> None:
    assert markup.table([["a"], ["", " "], ["1", "2|3"]]) == "| a |  |\n| --- | --- |\n| 1 | 2\\|3 |"
    assert markup.table([]) == markup.table([["", ""]]) == ""


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert markup.code_block("a\n````\nb") == "`````\na\n````\nb\n`````"


def test_superscripts() -> None:
    assert markup.superscript("-12") == "⁻¹²"
    assert markup.superscript("2nd") == "2nd"
    assert markup.superscript("") == ""


def test_headings_have_six_levels() -> None:
    assert [markup.heading("x", level) for level in (0, 1, 6, 9)] == ["# x", "# x", "###### x", "###### x"]


def test_list_items_stand_together() -> None:
    assert (
        markup.join_blocks([("a", False), ("- b", True), ("- c", True), ("d", False)]) == "a\n\n- b\n- c\n\nd"
    )
