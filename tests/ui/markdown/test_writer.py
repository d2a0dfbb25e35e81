from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QTextCharFormat, QTextCursor, QTextDocument, QTextTable
from pytestqt.qtbot import QtBot

from ui.markdown.document import QuietDocument
from ui.markdown.style import MarkdownStyle
from ui.markdown.writer import MarkdownWriter

SAMPLES = [
    "a paragraph\n",
    "- a\n- b\n  - c\n",
    "3. x\n4. y\n",
    "# heading\n",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n",
    "> quote\n",
    "---\n",
    "    code\n    more\n",
    "- [x] done\n- [ ] not\n",
]


@pytest.fixture
def style(qtbot: QtBot) -> MarkdownStyle:
    return MarkdownStyle.current()


def write(style: MarkdownStyle, *markdown: str) -> QuietDocument:
    document = QuietDocument()
    writer = MarkdownWriter(document, style)
    for piece in markdown:
        writer.write(piece)
    return document


def blocks_of(document: QTextDocument) -> list[tuple[object, ...]]:
    """Everything about a document's paragraphs that can be seen."""
    found: list[tuple[object, ...]] = []
    block = document.begin()
    while block.isValid():
        shape, items = block.blockFormat(), block.textList()
        found.append(
            (
                block.text(),
                shape.topMargin(),
                shape.bottomMargin(),
                shape.leftMargin(),
                shape.indent(),
                shape.lineHeight(),
                shape.headingLevel(),
                shape.marker(),
                shape.background().color().name(),
                items.itemText(block) if items else None,
                items.format().indent() if items else None,
                QTextCursor(block).currentTable() is not None,
            )
        )
        block = block.next()
    return found


def char_format_at(document: QTextDocument, text: str) -> QTextCharFormat:
    cursor = document.find(text)
    assert not cursor.isNull()
    return cursor.charFormat()


@pytest.mark.parametrize("last", SAMPLES)
def test_an_open_block_written_again_and_again_leaves_no_trace(style: MarkdownStyle, last: str) -> None:
    for first, middle in itertools.product(SAMPLES, SAMPLES):
        document = QuietDocument()
        writer = MarkdownWriter(document, style)
        writer.write(first)
        writer.mark()
        for end in range(1, len(middle)):
            writer.write(middle[:end])
            writer.rewind()
        writer.write(middle)
        writer.mark()
        writer.write(last)
        assert blocks_of(document) == blocks_of(write(style, first, middle, last))


def test_an_image_is_its_text_as_a_link_and_nothing_is_loaded(style: MarkdownStyle, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    assert image.save(str(picture))
    document = write(style, f"see ![a diagram]({picture.as_uri()}) and ![]({picture.as_uri()}), `![](x)`")
    assert document.toPlainText() == "see a diagram and image, ![](x)"
    assert char_format_at(document, "diagram").anchorHref() == picture.as_uri()
    assert document.resource(QTextDocument.ResourceType.ImageResource.value, picture.as_uri()) is None


def test_html_is_shown_as_text(style: MarkdownStyle) -> None:
    text = write(style, "a <b>bold</b> <img src='file:///etc/passwd'>\n\n<script>x</script>").toPlainText()
    assert "<b>bold</b>" in text
    assert "<img src='file:///etc/passwd'>" in text
    assert "<script>x</script>" in text


def test_links_keep_their_address(style: MarkdownStyle) -> None:
    document = write(style, "[name](https://example.org/a) and https://example.org/b")
    assert char_format_at(document, "name").anchorHref() == "https://example.org/a"
    assert char_format_at(document, "example.org/b").anchorHref() == "https://example.org/b"
    assert char_format_at(document, "name").foreground().color() == style.link


def test_inline_styles(style: MarkdownStyle) -> None:
    document = write(style, "**bold** *slanted* ~~struck~~ `code`")
    assert char_format_at(document, "bold").fontWeight() > 500
    assert char_format_at(document, "slanted").fontItalic()
    assert char_format_at(document, "struck").fontStrikeOut()
    assert char_format_at(document, "code").fontFamilies() == style.mono.families()
    assert char_format_at(document, "code").background().color() == style.code_background


def test_numbered_lists_start_where_they_say(style: MarkdownStyle) -> None:
    document = write(style, "3. x\n4. y\n")
    assert [item[9] for item in blocks_of(document)] == ["3.", "4."]


def test_a_tick_stays_with_its_item(style: MarkdownStyle) -> None:
    """Qt's reader lets the tick of a task leak into the quote after it."""
    document = write(style, "- [x] done\n\n> quote\n")
    done, quote = document.begin(), document.begin().next()
    assert done.blockFormat().marker() == done.blockFormat().MarkerType.Checked
    assert quote.blockFormat().marker() == done.blockFormat().MarkerType.NoMarker


def test_tables_have_borders_in_the_theme_s_colour(style: MarkdownStyle) -> None:
    document = write(style, "| a | b |\n|---|---|\n| one | `two` |\n")
    table: QTextTable | None = document.find("one").currentTable()
    assert table is not None
    assert (table.rows(), table.columns()) == (2, 2)
    assert table.format().border() == 1
    assert QColor(table.format().borderBrush().color()) == style.border


def test_the_direction_follows_each_paragraph(style: MarkdownStyle) -> None:
    document = write(style, "English\n\nعربي\n\n- עברית\n")
    directions = []
    block = document.begin()
    while block.isValid():
        directions.append(block.textDirection())
        block = block.next()
    left, right = Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft
    assert directions == [left, right, right]


def test_text_inside_a_list_is_moved_in(style: MarkdownStyle) -> None:
    document = QuietDocument()
    MarkdownWriter(document, style).write("para\n\n- item\n", level=2)
    assert [block[4] for block in blocks_of(document)] == [2, 0]
    assert [block[10] for block in blocks_of(document)] == [None, 3]
