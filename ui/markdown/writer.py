"""Writing Markdown into a text document, in the theme's fonts and colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from PySide6.QtGui import (
    QBrush,
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFragment,
    QTextLength,
    QTextList,
    QTextListFormat,
    QTextTable,
    QTextTableCell,
    QTextTableFormat,
)

from ui.markdown.document import parse_markdown
from ui.markdown.source_links import NO_SOURCES, cited_pieces, source_address
from ui.markdown.style import PARAGRAPH_GAP, MarkdownStyle
from ui.plain_text import plain_tip

QUOTE_LEVEL = QTextFormat.Property.BlockQuoteLevel
_CODE_LANGUAGE = QTextFormat.Property.BlockCodeLanguage
_RULE_WIDTH = QTextFormat.Property.BlockTrailingHorizontalRulerWidth
_GAP = QTextFormat.Property.UserProperty
"""Marks the empty paragraph of an empty document and those that Qt keeps around tables: the next block
takes its place, and until then it is as good as invisible."""
_LINE_HEIGHT = 135.0


class MarkdownWriter:
    """Appends Markdown to a document block by block.

    Qt reads the Markdown into a document of its own, which is then copied with formats of ours: Qt's own have
    no colours of the theme, no borders on tables, and would show images.
    """

    def __init__(
        self, document: QTextDocument, style: MarkdownStyle, sources: Mapping[int, str] = NO_SOURCES
    ) -> None:
        """Write to the end of a document; what cites one of the `sources`, as `[3]`, becomes a link.

        Their numbers are given with what the link says when it is pointed at.
        """
        self._cursor = QTextCursor(document)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if document.isEmpty():
            self._cursor.setBlockFormat(_gap_format())
        self._style = style
        self._sources = sources
        self._lists: dict[int, QTextList] = {}
        self._level = 0
        self.mark()

    def write(self, markdown: str, level: int = 0) -> None:
        """Append `markdown`, moved in by `level` levels of a list."""
        self._lists = {}
        self._level = level
        source = parse_markdown(markdown)
        self._cursor.beginEditBlock()
        block = source.begin()
        while block.isValid():
            table: QTextTable | None = QTextCursor(block).currentTable()
            if table is not None:
                self._write_table(table)
                block = source.findBlock(table.lastPosition()).next()
            else:
                if _is_shown(block):
                    self._write_block(block)
                block = block.next()
        self._cursor.endEditBlock()

    def mark(self) -> None:
        """Remember where the document ends now; `rewind` takes away what is written after."""
        block = self._cursor.block()
        self._end = self._cursor.position()
        self._end_format = block.blockFormat()

    def rewind(self) -> None:
        """Remove what was written since `mark`."""
        cursor = self._cursor
        cursor.beginEditBlock()
        cursor.setPosition(self._end, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if cursor.blockFormat() != self._end_format:
            _leave_list(cursor)
            cursor.setBlockFormat(self._end_format)
        cursor.endEditBlock()

    def _write_block(self, block: QTextBlock) -> None:
        source = block.blockFormat()
        target = self._block_format(block)
        base = self._base_format(source)
        self._start_block(target, base)
        items = block.textList()
        if items is not None:
            self._add_to_list(items, target)
        for fragment in _fragments(block):
            self._write_fragment(fragment, base)

    def _start_block(self, target: QTextBlockFormat, base: QTextCharFormat) -> None:
        current = self._cursor.block()
        if current.length() == 1 and (
            self._cursor.position() == 0 or current.blockFormat().hasProperty(_GAP)
        ):
            self._cursor.setBlockFormat(target)
            self._cursor.setBlockCharFormat(base)
            self._cursor.setCharFormat(base)
        else:
            self._cursor.insertBlock(target, base)
        _leave_list(self._cursor)

    def _block_format(self, block: QTextBlock) -> QTextBlockFormat:
        source, em = block.blockFormat(), self._style.em
        target = QTextBlockFormat()
        target.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        target.setBottomMargin(em * PARAGRAPH_GAP)
        target.setIndent(source.indent() + (0 if block.textList() else self._level))
        if source.headingLevel():
            target.setHeadingLevel(source.headingLevel())
            target.setLineHeight(120, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
            target.setTopMargin(0 if self._cursor.atStart() else em * 1.3)
            target.setBottomMargin(em * 0.45)
        if block.textList() is not None:
            target.setMarker(source.marker())
            if _in_same_list(block, block.next()):
                target.setBottomMargin(em * 0.22)
        if source.hasProperty(_CODE_LANGUAGE):
            target.setBackground(self._style.code_background)
            target.setNonBreakableLines(False)
            if block.next().isValid() and block.next().blockFormat().hasProperty(_CODE_LANGUAGE):
                target.setBottomMargin(0)
        if source.hasProperty(_RULE_WIDTH):
            target.setProperty(_RULE_WIDTH, source.property(_RULE_WIDTH))
            target.setBackground(QBrush(self._style.border))
            target.setLineHeight(em * 0.5, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        level = source.property(QUOTE_LEVEL)
        if level:
            target.setProperty(QUOTE_LEVEL, level)
            target.setLeftMargin(int(level) * em)
        return target

    def _base_format(self, source: QTextBlockFormat) -> QTextCharFormat:
        base = QTextCharFormat()
        quoted = bool(source.property(QUOTE_LEVEL))
        base.setForeground(self._style.muted if quoted else self._style.text)
        if source.hasProperty(_CODE_LANGUAGE):
            base.setFont(self._style.mono)
        elif source.headingLevel():
            base.setFontPointSize(self._style.heading_size(source.headingLevel()))
            base.setFontWeight(QFont.Weight.DemiBold)
        return base

    def _add_to_list(self, items: QTextList, target: QTextBlockFormat) -> None:
        known = self._lists.get(items.objectIndex())
        if known is not None:
            known.add(self._cursor.block())
            return
        source = items.format()
        made = QTextListFormat()
        made.setStyle(source.style())
        made.setStart(source.start())
        made.setNumberSuffix(source.numberSuffix())
        made.setIndent(source.indent() + self._level)
        self._lists[items.objectIndex()] = self._cursor.createList(made)

    def _write_fragment(self, fragment: QTextFragment, base: QTextCharFormat) -> None:
        source = fragment.charFormat()
        if source.isImageFormat():
            self._write_image(source, base)
            return
        target = QTextCharFormat(base)
        if source.fontWeight() > QFont.Weight.Normal.value:
            target.setFontWeight(QFont.Weight.DemiBold)
        target.setFontItalic(source.fontItalic())
        target.setFontStrikeOut(source.fontStrikeOut())
        if source.fontFixedPitch() and not base.fontFixedPitch():
            size = base.fontPointSize() or self._style.font.pointSizeF()
            target.setFontFamilies(self._style.mono.families())
            target.setFontFixedPitch(True)
            target.setFontPointSize(size * 0.93)
            target.setBackground(self._style.code_background)
        if source.anchorHref():
            self._make_link(target, source.anchorHref())
        is_code = source.fontFixedPitch() or base.hasProperty(QTextFormat.Property.FontFamilies)
        is_text = not source.anchorHref() and not is_code
        self._write_text(fragment.text(), target, self._sources if is_text else NO_SOURCES)

    def _write_text(self, text: str, target: QTextCharFormat, sources: Mapping[int, str]) -> None:
        """Write text, with links where it cites one of the sources."""
        for piece, number in cited_pieces(text, sources):
            form = QTextCharFormat(target)
            if number is not None:
                self._make_link(form, source_address(number), sources[number])
            self._cursor.insertText(piece, form)

    def _write_image(self, source: QTextCharFormat, base: QTextCharFormat) -> None:
        address = source.toImageFormat().name()
        text = str(source.property(QTextFormat.Property.ImageAltText) or "") or address
        target = QTextCharFormat(base)
        self._make_link(target, address)
        self._cursor.insertText(text, target)

    def _make_link(self, target: QTextCharFormat, address: str, tip: str = "") -> None:
        target.setAnchor(True)
        target.setAnchorHref(address)
        target.setToolTip(plain_tip(tip or address))
        target.setForeground(self._style.link)
        target.setFontUnderline(True)

    def _write_table(self, source: QTextTable) -> None:
        em = self._style.em
        self._start_block(_gap_format(), QTextCharFormat())
        table_format = QTextTableFormat()
        table_format.setBorder(1)
        table_format.setBorderCollapse(True)
        table_format.setBorderBrush(self._style.border)
        table_format.setBorderStyle(QTextTableFormat.BorderStyle.BorderStyle_Solid)
        table_format.setCellPadding(em * 0.32)
        table_format.setCellSpacing(0)
        table_format.setHeaderRowCount(1)
        table_format.setTopMargin(em * 0.2)
        table_format.setBottomMargin(em * 0.9)
        table_format.setLeftMargin(self._level * self._style.list_indent)
        columns = source.columns()
        table_format.setColumnWidthConstraints([QTextLength()] * columns)
        table = self._cursor.insertTable(source.rows(), columns, table_format)
        for row in range(source.rows()):
            for column in range(columns):
                self._write_cell(source.cellAt(row, column), table.cellAt(row, column), is_header=row == 0)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.setBlockFormat(_gap_format())
        self._cursor.setBlockCharFormat(QTextCharFormat())

    def _write_cell(self, source: QTextTableCell, target: QTextTableCell, *, is_header: bool) -> None:
        base = QTextCharFormat()
        base.setForeground(self._style.text)
        if is_header:
            base.setFontWeight(QFont.Weight.DemiBold)
            shade = target.format()
            shade.setBackground(self._style.code_background)
            target.setFormat(shade)
        outer = self._cursor
        self._cursor = target.firstCursorPosition()
        block = source.firstCursorPosition().block()
        last = source.lastCursorPosition().block()
        while block.isValid() and block.blockNumber() <= last.blockNumber():
            if block.length() > 1:
                alignment = QTextBlockFormat()
                alignment.setAlignment(block.blockFormat().alignment())
                self._cursor.setBlockFormat(alignment)
                for fragment in _fragments(block):
                    self._write_fragment(fragment, base)
            block = block.next()
        self._cursor = outer


def _leave_list(cursor: QTextCursor) -> None:
    items: QTextList | None = cursor.currentList()
    if items is not None:
        items.remove(cursor.block())


def _is_shown(block: QTextBlock) -> bool:
    source = block.blockFormat()
    return (
        block.length() > 1
        or block.textList() is not None
        or source.hasProperty(_RULE_WIDTH)
        or source.hasProperty(_CODE_LANGUAGE)
    )


def _in_same_list(block: QTextBlock, following: QTextBlock) -> bool:
    return following.isValid() and (following.textList() is not None or following.blockFormat().indent() > 0)


def _gap_format() -> QTextBlockFormat:
    gap = QTextBlockFormat()
    gap.setProperty(_GAP, True)
    gap.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return gap


def _fragments(block: QTextBlock) -> Iterator[QTextFragment]:
    iterator = block.begin()
    while not iterator.atEnd():
        yield iterator.fragment()
        iterator += 1
