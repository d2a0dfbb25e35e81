"""DOCX as Markdown: headings, numbered paragraphs, lists, tables, notes and text boxes.

The parts are read from the file's own XML, which also gives content controls, tracked insertions, notes and
numbers, and leaves pictures where they are.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from app.documents import markup
from app.documents.archive import DUBLIN_CORE_TITLE, Archive
from app.documents.cleaning import tidy_text
from app.documents.docx_numbering import BULLET, WORD, Numbering
from app.documents.extracted import Extracted
from app.documents.source import Source

_Blocks = list[tuple[str, bool]]

_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NOT_TEXT = frozenset(
    ("pPr", "rPr", "del", "moveFrom", "instrText", "delText", "sdtPr", "sdtEndPr", "tblPr", "Fallback")
)
_FIXED_TEXT = {"tab": "\t", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
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
            styles=_styles(_part(archive, main, "/styles")),
            numbering=Numbering(_part(archive, main, "/numbering")),
            notes={kind: _notes(_part(archive, main, f"/{kind}s"), kind) for kind in ("footnote", "endnote")},
        )
        properties = archive.read_xml_or_none(
            _related(archive, "", "/core-properties") or "docProps/core.xml"
        )
    text = tidy_text(markup.join_blocks([*writer.blocks(body), *writer.cited_notes()]))
    return Extracted(text, None if properties is None else properties.findtext(DUBLIN_CORE_TITLE))


@dataclass(frozen=True)
class _Style:
    """What a paragraph style says about its paragraphs; None where it leaves it to `parent`."""

    parent: str | None
    heading: int | None
    list_id: str | None
    list_level: int | None


class _Writer:
    """Turns the content of a document into blocks of Markdown, each with whether it belongs to a list."""

    def __init__(
        self, styles: dict[str, _Style], numbering: Numbering, notes: dict[str, dict[str, Any]]
    ) -> None:
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
        self._collect(paragraph, pieces, boxes)
        text = re.sub(r" *\n *", "\n", "".join(pieces)).strip()
        heading, list_id, level = self._format(paragraph)
        # A paragraph without text is not shown, but Word counts it where it is numbered.
        label = self._numbering.label(list_id, level) if list_id else None
        blocks: _Blocks = []
        if text and heading:
            numbered = f"{label} {text}" if label and label != BULLET else text
            blocks.append((markup.heading(" ".join(numbered.split()), heading), False))
        elif text and label is not None:
            indent = "  " * level
            blocks.append((f"{indent}{label} {text}".replace("\n", f"\n{indent}  "), True))
        elif text:
            blocks.append((text, False))
        for box in boxes:
            blocks += self.blocks(box)
        return blocks

    def _collect(self, element: Any, pieces: list[str], boxes: list[Any]) -> None:
        """Gather the text below an element and the text boxes in it, which stand apart."""
        for child in element:
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
            elif name == "r" and _is_raised(child):
                raised: list[str] = []
                self._collect(child, raised, boxes)
                pieces.append(markup.superscript("".join(raised)))
            elif name not in _NOT_TEXT:
                self._collect(child, pieces, boxes)

    def _cite(self, kind: str, note_id: str) -> str:
        """Return the mark of a note, numbered in the order of the text."""
        if note_id not in self._notes[kind]:
            return ""
        self._cited.append((kind, note_id))
        return f"[^{len(self._cited)}]"

    def _format(self, paragraph: Any) -> tuple[int | None, str | None, int]:
        """Return a paragraph's heading level, its list and its level in that, from itself and its style."""
        own = _style(paragraph.find(f"{WORD}pPr"), "")
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
            num_columns = _number(None if span is None else span.get(f"{WORD}val")) or 1
            texts += [""] * (min(num_columns, markup.MAX_COLUMNS) - 1)
        return texts


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


def _styles(root: Any) -> dict[str, _Style]:
    """Return the paragraph styles by their id."""
    if root is None:
        return {}
    styles = {}
    for element in root.iter(f"{WORD}style"):
        name = element.find(f"{WORD}name")
        parent = element.find(f"{WORD}basedOn")
        style = _style(element.find(f"{WORD}pPr"), "" if name is None else name.get(f"{WORD}val", ""))
        parent_id = None if parent is None else parent.get(f"{WORD}val")
        styles[element.get(f"{WORD}styleId", "")] = _Style(
            parent_id, style.heading, style.list_id, style.list_level
        )
    return styles


def _style(properties: Any, name: str) -> _Style:
    """Return what paragraph properties say; `name` is that of the style, which Word keeps in English."""
    heading = None
    if match := re.fullmatch(r"heading (\d)", name, re.IGNORECASE):
        heading = int(match[1])
    elif name.lower() == "title":
        heading = 1
    if properties is None:
        return _Style(None, heading, None, None)
    found = {
        key: None if (element := properties.find(path)) is None else element.get(f"{WORD}val")
        for key, path in {
            "parent": f"{WORD}pStyle",
            "outline": f"{WORD}outlineLvl",
            "list": f"{WORD}numPr/{WORD}numId",
            "level": f"{WORD}numPr/{WORD}ilvl",
        }.items()
    }
    outline = _number(found["outline"])
    if heading is None and outline is not None:
        heading = outline + 1 if outline < 6 else 0  # 0: body text, whatever the style above says
    return _Style(found["parent"], heading, found["list"], _number(found["level"]))


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


def _name(element: Any) -> str:
    """Return an element's name without its namespace, empty for what is no element, such as an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _number(text: str | None) -> int | None:
    """Return an attribute as a number, None when it is none."""
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None
