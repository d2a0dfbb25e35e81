"""Numbers in an answer that open its sources."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QTextFragment
from pytestqt.qtbot import QtBot

from ui.markdown.document import QuietDocument
from ui.markdown.source_links import cited_pieces, source_address, source_number
from ui.markdown.style import MarkdownStyle
from ui.markdown.writer import MarkdownWriter

TIPS = {1: "p. 1", 3: "p. 9\nFirst words", 4: "p. 12"}


def links(markdown: str) -> list[tuple[str, str, str]]:
    """Return text, address and tip of every link that is written."""
    document = QuietDocument()
    MarkdownWriter(document, MarkdownStyle.current(), TIPS).write(markdown)
    found = []
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            fragment: QTextFragment = iterator.fragment()
            form = fragment.charFormat()
            if form.isAnchor():
                found.append((fragment.text(), form.anchorHref(), form.toolTip()))
            iterator += 1
        block = block.next()
    return found


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("It is so [3].", [("[3]", 3)]),
        ("It is so [3, 4].", [("3", 3), ("4", 4)]),
        ("- **bold [1]** and [3](p. 12)", [("[1]", 1), ("[3]", 3)]),
        ("| a |\n|---|\n| b [4] |", [("[4]", 4)]),
        ("Not there [2].", []),
        ("Code `a[3]`.", []),
        ("    a[3]", []),
    ],
)
def test_numbers_of_sources_are_links_and_nothing_else_is(
    markdown: str, expected: list[tuple[str, int]], qtbot: QtBot
) -> None:
    wanted = [(text, source_address(number), TIPS[number]) for text, number in expected]
    assert links(markdown) == wanted


def test_a_link_of_the_model_stays_its_own(qtbot: QtBot) -> None:
    assert links("[3](https://example.org/3)")[0][1] == "https://example.org/3"


def test_the_text_is_what_it_was() -> None:
    text = "a [3] b [1, 4] c [2] 【3】"
    assert "".join(piece for piece, _ in cited_pieces(text, TIPS)) == text


def test_an_address_leads_back_to_its_number() -> None:
    assert source_number(source_address(12)) == 12
    for address in ("https://example.org", "12", "octavo-source:", "octavo-source:x"):
        assert source_number(address) is None
