"""DOCX as Markdown: headings, numbered paragraphs, lists, tables, notes, links and text boxes.

The parts are read from the file's own XML, which also gives content controls, tracked insertions, notes and
numbers, and leaves pictures where they are.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from app.documents import markup
from app.documents.archive import DUBLIN_CORE_TITLE, Archive
from app.documents.cleaning import tidy_text
from app.documents.docx_fields import Fields, field_text
from app.documents.docx_numbering import BULLET, WORD, Numbering
from app.documents.docx_styles import Style, as_number, paragraph_style, read_styles
from app.documents.extracted import Extracted
from app.documents.page_marks import is_page_mark, page_mark, without_page_marks
from app.documents.source import Source

_Blocks = list[tuple[str, bool]]

_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_RELATIONSHIP_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_NUM_PAGES = "{http://schemas.openxmlformats.org/officeDocument/2006/extended-properties}Pages"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NOT_TEXT = frozenset(
    ("pPr", "rPr", "del", "moveFrom", "delText", "delInstrText", "sdtPr", "sdtEndPr", "tblPr", "Fallback")
)
_FIXED_TEXT = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
_MEANT = frozenset(("hyperlink", "fldSimple", "rt"))
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_BLOCK_WRAPPERS = frozenset(
    ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice")
)


def read_docx(source: Source) -> Extracted:
    """Read a Word document."""
    with Archive(source) as archive:
        main = _related(archive, "", "/officeDocument") or "word/document.xml"
        body = archive.read_xml(main).find(f"{WORD}body")
        if body is None:
            raise ValueError("a document without a body")
        writer = _Writer(
            styles=read_styles(_part(archive, main, "/styles")),
            numbering=Numbering(_part(archive, main, "/numbering")),
            links=_links(archive, main),
            notes={kind: _notes(_part(archive, main, f"/{kind}s"), kind) for kind in ("footnote", "endnote")},
        )
        properties = archive.read_xml_or_none(
            _related(archive, "", "/core-properties") or "docProps/core.xml"
        )
        num_pages = _num_pages(archive)
    text = tidy_text(markup.join_blocks([*writer.blocks(body), *writer.cited_notes()]))
    text, page_starts = without_page_marks(text)
    title = None if properties is None else properties.findtext(DUBLIN_CORE_TITLE)
    if len(page_starts) != num_pages:
        return Extracted(text, title)  # Word did not lay it out anew when it was last saved
    return Extracted(text, title, num_pages, page_starts=page_starts)


class _Writer:
    """Turns the content of a document into blocks of Markdown, each with whether it belongs to a list."""

    def __init__(
        self,
        styles: dict[str, Style],
        numbering: Numbering,
        links: dict[str, str],
        notes: dict[str, dict[str, Any]],
    ) -> None:
        self._links = links
        self.num_page_breaks = 0
        self._styles = styles
        self._numbering = numbering
        self._notes = notes
        self._cited: list[tuple[str, str]] = []

    def blocks(self, container: Any) -> _Blocks:
        """Return the paragraphs and tables in `container`, also those in content controls."""
        blocks: _Blocks = []
        for child in container:
            name = _name(child)
            if name == "p":
                blocks += self._paragraph(child)
            elif name == "tbl":
                blocks += self._table(child)
            elif name in _BLOCK_WRAPPERS:
                blocks += self.blocks(child)
        return blocks

    def cited_notes(self) -> _Blocks:
        """Return the footnotes and endnotes that the text refers to."""
        blocks: _Blocks = []
        for index, (kind, note_id) in enumerate(self._cited):
            text = " ".join(block for block, _ in self.blocks(self._notes[kind][note_id]))
            blocks.append((f"[^{index + 1}]: {' '.join(text.split())}", True))
        return blocks

    def _paragraph(self, paragraph: Any) -> _Blocks:
        """Return a paragraph and the text boxes that are anchored in it."""
        pieces: list[str] = []
        boxes: list[Any] = []
        self._collect(paragraph, pieces, boxes, Fields())
        text = re.sub(r" +\n", "\n", "".join(pieces)).strip()
        heading, list_id, level = self._format(paragraph)
        # A paragraph without text is not shown, but Word counts it where it is numbered.
        label = self._numbering.label(list_id, level) if list_id else None
        blocks: _Blocks = []
        if is_page_mark(text):
            blocks.append((text, False))
        elif text and heading:
            numbered = f"{label} {text}" if label and label != BULLET else text
            blocks.append((markup.heading(" ".join(numbered.split()), heading), False))
        elif text and label is not None:
            indent = "  " * level
            blocks.append((f"{indent}{label} {text}".replace("\n", f"\n{indent}  "), True))
        elif text:
            blocks.append((markup.literal(text), False))
        for box in boxes:
            blocks += self.blocks(box)
        return blocks

    def _collect(self, element: Any, pieces: list[str], boxes: list[Any], fields: Fields) -> None:
        """Gather the text below an element and the text boxes in it, which stand apart."""
        # What is to be read over a word stands before it.
        for child in reversed(element) if _name(element) == "ruby" else element:
            name = _name(child)
            if name == "t":
                pieces.append(child.text or "")
            elif name == "txbxContent":
                boxes.append(child)
            elif name == "br":
                pieces.append("\n" if child.get(f"{WORD}type") in (None, "textWrapping") else "")
            elif name in _FIXED_TEXT:
                pieces.append(_FIXED_TEXT[name])
            elif name in _NOTES:
                pieces.append(self._cite(_NOTES[name], child.get(f"{WORD}id", "")))
            elif name == "lastRenderedPageBreak":
                self.num_page_breaks += 1
                pieces.append(page_mark(self.num_page_breaks + 1))
            elif name == "fldChar":
                fields.mark(child.get(f"{WORD}fldCharType", ""), pieces)
            elif name == "instrText":
                fields.instruct(child.text or "")
            elif name in _MEANT or (name == "r" and _is_raised(child)):
                inside: list[str] = []
                self._collect(child, inside, boxes, fields)
                pieces.append(self._meant("".join(inside), child))
            elif name not in _NOT_TEXT and not (name == "r" and _is_hidden(child)):
                self._collect(child, pieces, boxes, fields)

    def _meant(self, text: str, element: Any) -> str:
        """Return the text of a link, of what is to be read over a word, or of a raised run."""
        name = _name(element)
        if name == "hyperlink":
            return markup.link(text, self._links.get(element.get(_RELATIONSHIP_ID, ""), ""))
        if name == "fldSimple":
            return field_text(text, element.get(f"{WORD}instr", ""))
        if name == "rt":
            return f"({text})" if text else ""
        return "" if _is_hidden(element) else markup.superscript(text)

    def _cite(self, kind: str, note_id: str) -> str:
        """Return the mark of a note, numbered in the order of the text."""
        if note_id not in self._notes[kind]:
            return ""
        self._cited.append((kind, note_id))
        return f"[^{len(self._cited)}]"

    def _format(self, paragraph: Any) -> tuple[int | None, str | None, int]:
        """Return a paragraph's heading level, its list and its level in that, from itself and its style."""
        own = paragraph_style(paragraph.find(f"{WORD}pPr"), "")
        heading, list_id, level = own.heading, own.list_id, own.list_level
        style = self._styles.get(own.parent or "")
        seen: set[int] = set()
        while style is not None and id(style) not in seen:
            seen.add(id(style))
            heading = style.heading if heading is None else heading
            level = style.list_level if level is None and list_id is None else level
            list_id = style.list_id if list_id is None else list_id
            style = self._styles.get(style.parent or "")
        return heading or None, None if list_id == "0" else list_id, level or 0

    def _table(self, table: Any) -> _Blocks:
        """Return a table as Markdown; one that only arranges the page as what is in its cells."""
        rows = [_inside(row, "tc") for row in _inside(table, "tr")]
        nested = table.find(f".//{WORD}tbl") is not None
        if nested or max((len(row) for row in rows), default=0) < 2:
            return [block for row in rows for cell in row for block in self.blocks(cell)]
        text = markup.table([self._row(row) for row in rows])
        return [(text, False)] if text else []

    def _row(self, cells: list[Any]) -> list[str]:
        """Return one row's texts, with an empty one wherever a cell spans more than its own place."""
        texts: list[str] = []
        for cell in cells:
            covered = cell.find(f"{WORD}tcPr/{WORD}vMerge")
            is_covered = covered is not None and covered.get(f"{WORD}val") != "restart"
            texts.append("" if is_covered else " ".join(block.strip() for block, _ in self.blocks(cell)))
            span = cell.find(f"{WORD}tcPr/{WORD}gridSpan")
            num_columns = as_number(None if span is None else span.get(f"{WORD}val")) or 1
            texts += [""] * (min(num_columns, markup.MAX_COLUMNS) - 1)
        return texts


def _links(archive: Archive, main: str) -> dict[str, str]:
    """Return the addresses that the main document links to, by the relationship's id."""
    folder, name = posixpath.split(main)
    relationships = archive.read_xml_or_none(posixpath.join(folder, "_rels", f"{name}.rels"))
    return {
        relationship.get("Id", ""): relationship.get("Target", "")
        for relationship in (() if relationships is None else relationships.iter(_RELATIONSHIP))
        if relationship.get("TargetMode") == "External"
    }


def _num_pages(archive: Archive) -> int | None:
    """Return how many pages the program that saved the document had laid out."""
    properties = archive.read_xml_or_none(_related(archive, "", "/extended-properties") or "docProps/app.xml")
    return None if properties is None else as_number(properties.findtext(_NUM_PAGES))


def _part(archive: Archive, main: str, kind: str) -> Any:
    """Return the root of the part that the main document relates to as `kind`, None when it has none."""
    return archive.read_xml_or_none(_related(archive, main, kind) or f"word{kind}.xml")


def _related(archive: Archive, part: str, kind: str) -> str | None:
    """Return the name of the part that `part` (empty: the package) relates to as `kind`."""
    folder, name = posixpath.split(part)
    relationships = archive.read_xml_or_none(posixpath.join(folder, "_rels", f"{name}.rels"))
    for relationship in () if relationships is None else relationships.iter(_RELATIONSHIP):
        if relationship.get("Type", "").endswith(kind):
            target = posixpath.join("/", folder, relationship.get("Target", ""))
            return posixpath.normpath(target).lstrip("/")
    return None


def _notes(root: Any, kind: str) -> dict[str, Any]:
    """Return the footnotes or endnotes by id, without the lines that separate them from the text."""
    if root is None:
        return {}
    return {
        note.get(f"{WORD}id", ""): note
        for note in root.iter(f"{WORD}{kind}")
        if note.get(f"{WORD}type", "normal") == "normal"
    }


def _inside(element: Any, wanted: str) -> list[Any]:
    """Return the rows of a table or the cells of a row, also those in content controls."""
    found = []
    for child in element:
        name = _name(child)
        if name == wanted:
            found.append(child)
        elif name in _BLOCK_WRAPPERS:
            found += _inside(child, wanted)
    return found


def _is_raised(run: Any) -> bool:
    """Return whether a run is set as superscript."""
    align = run.find(f"{WORD}rPr/{WORD}vertAlign")
    return align is not None and align.get(f"{WORD}val") == "superscript"


def _is_hidden(run: Any) -> bool:
    """Return whether a run is in the file and not shown."""
    hidden = run.find(f"{WORD}rPr/{WORD}vanish")
    return hidden is not None and hidden.get(f"{WORD}val") not in ("0", "false", "off")


def _name(element: Any) -> str:
    """Return an element's name without its namespace, empty for what is no element, such as an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
