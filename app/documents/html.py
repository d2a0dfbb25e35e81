"""HTML as Markdown: headings, lists, tables, preformatted text, notes, and links out of the page."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from app.documents import html_links, markup
from app.documents.cleaning import clean_text, tidy_text
from app.documents.document import DocumentError
from app.documents.encodings import declared_encoding
from app.documents.extracted import Extracted
from app.documents.page_marks import page_mark, without_page_marks
from app.documents.plain import decode_source
from app.documents.source import Source

_SELF_CLOSED = re.compile(
    r"<((?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)[a-z]\w*)([^<>]*)/>",
    re.IGNORECASE,
)
_DECLARED_INSIDE = re.compile(
    r"\A(\s*(?:<\?[^>]*>\s*)?<!DOCTYPE\b[^<>\[]*)\[.*?\]\s*(?=>)", re.IGNORECASE | re.DOTALL
)
_DROPPED_TAGS = (
    "head script style noscript template svg canvas iframe object embed audio video button select "
    "textarea rp annotation annotation-xml"
)
_DROPPED = frozenset(_DROPPED_TAGS.split())
_BLOCK_TAGS = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p section summary "
    "table tbody td tfoot th thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_FIXED_TEXT = {"br": "\n", "rt": "("}  # a reading of Chinese signs; not all pages say how to set it apart
_MAX_SPAN = 50


def read_html(source: Source, encoding: str | None) -> Extracted:
    """Read a web page."""
    decoded = decode_source(source, encoding, declared_encoding(source.head))
    root = parse_html(decoded.text, source)
    text, _ = without_page_marks(html_to_markdown(root))
    return Extracted(text, html_title(root), encoding=decoded.encoding, encoding_guessed=decoded.guessed)


def parse_html(text: str, source: Source) -> Any:
    """Return the root element of a page, HTML or XHTML, None when it has none.

    Raises `DocumentError` when the page is nested deeper than the parser goes and text would be lost.
    """
    # XHTML may close any element in itself; HTML would read `<title/>` as the start of one that never ends.
    text = _SELF_CLOSED.sub(r"<\1\2></\1>", clean_text(text))
    # It may declare entities as well, where HTML would take the first `>` for the end of the declarations.
    text = _DECLARED_INSIDE.sub(r"\1", text)
    # No limit on a text's length (pictures lie in attributes): HTML has no entities that could multiply.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    root = etree.fromstring(text.encode(), parser)
    if any(entry.level == etree.ErrorLevels.FATAL for entry in parser.error_log):
        raise DocumentError(
            f"{source.name} is nested too deeply to be read. "
            "Open it in a browser, print it to a PDF and choose that."
        )
    return root


def html_title(root: Any) -> str | None:
    """Return the words of the page's `<title>`."""
    return None if root is None else root.findtext("head/title")


def html_to_markdown(root: Any, notes: dict[str, str] | None = None) -> str:
    """Return the text below an element as Markdown.

    `notes` are the labels of the notes that pages before refer to, by the note's id; this page adds its own.
    """
    if root is None:
        return ""
    writer = _Writer({} if notes is None else notes)
    walker = etree.iterwalk(root, events=("start", "end"))
    skipping = False
    for event, element in walker:
        if event == "start":
            skipping = not writer.open(element)
            if skipping:
                walker.skip_subtree()
            continue
        if not skipping:
            writer.close(element)
        skipping = False
        if element is not root:
            writer.add(element.tail)
    return tidy_text(writer.text())


class _Writer:
    """Collects blocks of Markdown while elements open and close.

    Attributes:
        blocks: finished blocks, each with whether it belongs to a list.
        inline: pieces of the block that is being written.
        lists: for each open list the next number, None for bullets.
        marker: what the next block starts with: a bullet, a number or the signs of a heading.
        num_quotes: open block quotes.
        notes: labels of the notes that are referred to, by id.
        links: where in `inline` the open links began, and with how many blocks before.
    """

    def __init__(self, notes: dict[str, str]) -> None:
        self.notes = notes
        self.links: list[tuple[int, int]] = []
        self.blocks: list[tuple[str, bool]] = []
        self.inline: list[str] = []
        self.lists: list[int | None] = []
        self.marker = ""
        self.num_quotes = 0

    def open(self, element: Any) -> bool:
        """Begin an element; return whether its inside is to be walked."""
        tag = element.tag
        if tag in _DROPPED or "hidden" in element.attrib:
            return False
        if tag in _BLOCKS:
            self.flush()
        if tag == "pre":
            self._whole(markup.code_block("".join(element.itertext()).strip("\n")))
            return False
        if tag == "table" and _is_data(element):
            self._whole(_table(element, self.notes))
            return False
        if html_links.is_page_break(element):
            number = html_links.page_number(element)
            self.inline.append("" if number is None else page_mark(number))
            return False
        self._begin_note(element)
        if tag == "a" and (html_links.leads_to_itself(element) or self._is_written_as_note(element)):
            return False
        if tag == "sup" and len(element) == 0:
            self.inline.append(markup.superscript(element.text or ""))
            return False
        self._begin(element)
        self.add(element.text)
        return True

    def close(self, element: Any) -> None:
        """End an element whose inside was walked."""
        tag = element.tag
        if tag in _BLOCKS:
            self.flush()
        if tag in _HEADINGS or tag == "li":
            self.marker = ""
        elif tag in ("ul", "ol"):
            self.lists.pop()
        elif tag == "blockquote":
            self.num_quotes -= 1
        elif tag == "a":
            self._end_link(element)
        elif tag == "rt":
            self.inline.append(")")

    def add(self, text: str | None) -> None:
        """Add running text, whose white space means nothing."""
        if text:
            self.inline.append(re.sub(r"[ \t\n]+", " ", text))

    def flush(self) -> None:
        """Finish the block that is being written, if there is anything in it."""
        text = re.sub(r" *\n *", "\n", "".join(self.inline))
        text = re.sub(r" {2,}", " ", text).strip(" \n")
        self.inline.clear()
        if not text:
            return
        if self.marker.startswith("#"):
            text = text.replace("\n", " ")
        elif not self.marker:
            text = markup.literal(text)
        self._append(text, self.marker)
        self.marker = ""

    def text(self) -> str:
        """Return all that was written."""
        self.flush()
        return markup.join_blocks(self.blocks)

    def _begin(self, element: Any) -> None:
        """Note what an element means for the text inside it."""
        tag = element.tag
        if tag in _HEADINGS:
            self.marker = "#" * _HEADINGS[tag] + " "
        elif tag in _FIXED_TEXT:
            self.inline.append(_FIXED_TEXT[tag])
        elif tag == "ul":
            self.lists.append(None)
        elif tag == "ol":
            self.lists.append(_number(element.get("start"), 1))
        elif tag == "li":
            self.marker = self.marker if self.marker.startswith("[^") else self._item_marker(element)
        elif tag == "blockquote":
            self.num_quotes += 1
        elif tag == "a":
            self.links.append((len(self.inline), len(self.blocks)))

    def _end_link(self, element: Any) -> None:
        """Write where the words of a link lead, unless they are more than one block."""
        start, num_blocks = self.links.pop()
        if num_blocks == len(self.blocks) and start <= len(self.inline):
            words = "".join(self.inline[start:])
            self.inline[start:] = [markup.link(words, element.get("href") or "")]

    def _begin_note(self, element: Any) -> None:
        """Let the next block be a note when this element is one that was referred to."""
        label = self.notes.get(element.get("id") or "")
        if label is not None and not "".join(self.inline).strip():
            self.marker = f"[^{label}]: "

    def _is_written_as_note(self, link: Any) -> bool:
        """Write the mark of a note; return whether the link is one, or only leads back to one."""
        is_in_note = self.marker.startswith("[^") and not "".join(self.inline).strip()
        label = html_links.note_label(link)
        if html_links.leads_back(link) or (is_in_note and link.get("href", "").startswith("#")):
            return True
        if label is None:
            return False
        self.notes[html_links.note_id(link)] = label
        self.inline.append(f"[^{label}]")
        return True

    def _item_marker(self, element: Any) -> str:
        """Return the bullet or number of a list item and count on."""
        if not self.lists or self.lists[-1] is None:
            return "- "
        number = _number(element.get("value"), self.lists[-1])
        self.lists[-1] = number + 1
        return f"{number}. "

    def _whole(self, block: str) -> None:
        """Add a block that is finished as it is."""
        self.flush()
        if block:
            self._append(block, "")

    def _append(self, text: str, marker: str) -> None:
        """Add a block with its quotes and its place in the lists."""
        first = "> " * self.num_quotes + "  " * (len(self.lists) - 1) + marker
        further = "> " * self.num_quotes + "  " * len(self.lists)
        start = first if marker else further
        self.blocks.append((start + text.replace("\n", f"\n{further}"), bool(self.lists)))


def _is_data(table: Any) -> bool:
    """Return whether a table holds rows and columns, and is not there to arrange a page."""
    if table.find(".//table") is not None:
        return False
    widths = [sum(1 for cell in row if cell.tag in ("td", "th")) for row in table.iter("tr")]
    return len(widths) > 1 and max(widths) > 1


def _table(table: Any, notes: dict[str, str]) -> str:
    """Return a table as Markdown, its caption above it."""
    rows: list[list[str]] = []
    pending: dict[int, int] = {}  # rows that the cell above still covers, by column
    for row in table.iter("tr"):
        rows.append(_row([cell for cell in row if cell.tag in ("td", "th")], pending, notes))
    caption = table.find("caption")
    title = "" if caption is None else " ".join(html_to_markdown(caption, notes).split())
    return "\n\n".join(filter(None, (title, markup.table(rows))))


def _row(cells: list[Any], pending: dict[int, int], notes: dict[str, str]) -> list[str]:
    """Return one row's texts, with an empty one wherever a cell spans more than its own place."""
    texts: list[str] = []

    def skip_covered() -> None:
        while pending.get(len(texts), 0) > 0:
            pending[len(texts)] -= 1
            texts.append("")

    for cell in cells:
        skip_covered()
        num_columns = min(max(_number(cell.get("colspan"), 1), 1), _MAX_SPAN)
        num_rows = max(_number(cell.get("rowspan"), 1), 1)
        for column in range(len(texts), len(texts) + num_columns):
            pending[column] = num_rows - 1
        texts += [html_to_markdown(cell, notes), *[""] * (num_columns - 1)]
    skip_covered()
    return texts


def _number(value: str | None, default: int) -> int:
    """Return an attribute as a number, `default` when it is none."""
    try:
        return int(value) if value is not None else default
    except ValueError:
        return default
