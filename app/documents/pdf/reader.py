"""PDF through PDFium, page by page."""

from __future__ import annotations

from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.document import DocumentError
from app.documents.extracted import Extracted, OnProgress
from app.documents.limits import MAX_TEXT_CHARS
from app.documents.pdf.blocks import page_blocks
from app.documents.pdf.furniture import without_furniture
from app.documents.pdf.glyphs import PageGlyphs
from app.documents.pdf.headings import Headings, Outline, read_outline
from app.documents.pdf.lines import Line, Table, page_lines
from app.documents.pdf.segments import page_segments
from app.documents.pdf.words import SplitWords
from app.documents.refusals import refuse_protected, refuse_too_long
from app.documents.source import Source

_PAGES_SEARCHED_FOR_PICTURES = 20
_MIN_PROSE_CHARS = 20

Page = list[Line | Table]


def read_pdf(source: Source, on_progress: OnProgress) -> Extracted:
    """Read the pages' text; pages without any are counted, a document without any is refused."""
    with _open(source) as document:
        num_pages = len(document)
        if num_pages == 0:
            raise ValueError("a document without pages")
        pages = _pages(document, source, on_progress)
        if not any(pages):
            raise _without_text(document, source)
        outline = read_outline(document)
        title = document.get_metadata_value("Title")
    texts = _page_texts(without_furniture(pages), outline)
    text, page_starts = _joined(texts)
    num_textless_pages = sum(1 for page in pages if not page)
    return Extracted(text, title, num_pages, num_textless_pages, page_starts=page_starts)


def _open(source: Source) -> pypdfium2.PdfDocument:
    """Open the file; raise `DocumentError` when it is protected."""
    source.file.seek(0)
    try:
        return pypdfium2.PdfDocument(source.file)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise refuse_protected(source) from error
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_SECURITY:
            raise DocumentError(
                f"{source.name} is protected in a way that cannot be opened here. "
                "Print it to a new PDF and choose that."
            ) from error
        raise


def _pages(document: pypdfium2.PdfDocument, source: Source, on_progress: OnProgress) -> list[Page]:
    """Return the lines of each page, none for one that has no text or is damaged."""
    num_pages = len(document)
    num_left_chars = MAX_TEXT_CHARS
    pages = []
    for index in range(num_pages):
        on_progress(index, num_pages)
        lines, num_chars = _page(document, index)
        pages.append(lines)
        num_left_chars -= num_chars
        if num_left_chars < 0:
            raise refuse_too_long(source)
    on_progress(num_pages, num_pages)
    return pages


def _page(document: pypdfium2.PdfDocument, index: int) -> tuple[Page, int]:
    """Return the lines of one page and how many characters it has."""
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return [], 0
    try:
        glyphs = PageGlyphs(page, page.get_textpage())
        return page_lines(page_segments(glyphs)), len(glyphs.text)
    finally:
        page.close()


def _page_texts(pages: Sequence[Page], outline: Outline) -> list[str]:
    """Return the text of each page, with `LINE_END_HYPHEN` where a word was split."""
    headings = Headings(pages, outline)
    return ["\n\n".join(page_blocks(page, index, headings)) for index, page in enumerate(pages)]


def _joined(texts: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the pages as one text with split words joined, and where each page begins in it."""
    split_words = SplitWords(texts)
    pieces: list[str] = []
    starts: list[int] = []
    num_waiting = 0  # pages without text: they begin where the next one does
    num_chars = 0
    for text in map(split_words.join, texts):
        num_waiting += 1
        if not text:
            continue
        if pieces and (going_on := split_words.going_on(pieces[-1], text)) is not None:
            num_chars += len(going_on) - len(pieces[-1])
            pieces[-1] = going_on
        elif pieces:
            pieces.append(_separator(pieces[-1], text))
            num_chars += len(pieces[-1])
        starts += [num_chars] * num_waiting
        pieces.append(text)
        num_chars += len(text)
        num_waiting = 0
    return "".join(pieces), (*starts, *[num_chars] * num_waiting)


def _separator(text: str, following: str) -> str:
    """Return what parts two pages: a line's end where a sentence goes on, else a blank line."""
    last = text[text.rfind("\n") + 1 :]
    is_prose = last[:1] not in ("#", "|") and len(last) > _MIN_PROSE_CHARS
    goes_on = following[:1].islower() and last[-1:] not in ".!?:。！？："
    return "\n" if is_prose and goes_on else "\n\n"


def _without_text(document: pypdfium2.PdfDocument, source: Source) -> DocumentError:
    """Say why there is nothing to read."""
    num_pages = len(document)
    pages = "1 page, a picture" if num_pages == 1 else f"{num_pages} pages, all of them pictures"
    if not _has_pictures(document):
        return DocumentError(
            f"{source.name} holds no text: it is empty or drawn. Choose a PDF whose text can be selected."
        )
    return DocumentError(
        f"{source.name} has {pages} without text, such as a scan. Run text recognition (OCR) on it first "
        "and choose the PDF that comes out."
    )


def _has_pictures(document: pypdfium2.PdfDocument) -> bool:
    """Return whether there is a picture on one of the first pages."""
    for index in range(min(len(document), _PAGES_SEARCHED_FOR_PICTURES)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            continue
        if any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)):
            return True
    return False
