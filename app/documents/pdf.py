"""PDF through PDFium: the text of each page in the order in which it was set, a blank line between pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.cleaning import tidy_text
from app.documents.document import DocumentError
from app.documents.extracted import Extracted, OnProgress
from app.documents.limits import MAX_TEXT_CHARS
from app.documents.refusals import refuse_protected
from app.documents.source import Source

LINE_END_HYPHEN = "\x02"
"""PDFium's sign for a hyphen at the end of a line, which it takes out with the line break."""

_SPLIT_WORD = re.compile(rf"(\w+){LINE_END_HYPHEN}(\w*)")
_HYPHENATED = re.compile(r"(?=\b(\w+-\w+)\b)")
_DOT_LEADER = re.compile(r" ?(?:\. ?){6,}")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_PAGES_SEARCHED_FOR_PICTURES = 20


def read_pdf(source: Source, on_progress: OnProgress) -> Extracted:
    """Read the pages' text; pages without any are counted, a document without any is refused."""
    with _open(source) as document:
        num_pages = len(document)
        if num_pages == 0:
            raise ValueError("a document without pages")
        pages = list(_page_texts(document, on_progress))
        num_textless_pages = sum(1 for page in pages if not page)
        if num_textless_pages == num_pages:
            raise _without_text(document, source)
        title = document.get_metadata_value("Title")
    text = join_split_words("\n\n".join(filter(None, pages)))
    return Extracted(text, title, num_pages, num_textless_pages)


def join_split_words(text: str) -> str:
    """Put words together that were split at the ends of lines.

    The hyphen stays where the document has the same word with one elsewhere, and before anything but a small
    letter unless the document has the word without one.
    """
    if LINE_END_HYPHEN not in text:
        return text
    hyphenated = {word.lower() for word in _HYPHENATED.findall(text)}
    words = set(re.findall(r"\w+", text))

    def join(match: re.Match[str]) -> str:
        left, right = match.groups()
        if f"{left}-{right}".lower() in hyphenated:
            return f"{left}-{right}"
        return left + right if right[:1].islower() or left + right in words else f"{left}-{right}"

    return _SPLIT_WORD.sub(join, text).replace(LINE_END_HYPHEN, "-")


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


def _page_texts(document: pypdfium2.PdfDocument, on_progress: OnProgress) -> Iterator[str]:
    """Yield the tidy text of each page, empty for one that has none or is damaged."""
    num_pages = len(document)
    num_left_chars = MAX_TEXT_CHARS
    for index in range(num_pages):
        on_progress(index, num_pages)
        text = _tidy_page(_page_text(document, index))
        num_left_chars -= len(text)
        if num_left_chars < 0:
            return
        yield text
    on_progress(num_pages, num_pages)


def _tidy_page(text: str) -> str:
    """Clean a page, keep its hyphens at line ends, and shorten the dots that lead to page numbers."""
    text = _DOT_LEADER.sub(" … ", text)
    return LINE_END_HYPHEN.join(tidy_text(part) for part in text.split(LINE_END_HYPHEN))


def _page_text(document: pypdfium2.PdfDocument, index: int) -> str:
    """Return the text of one page as PDFium has it."""
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return ""
    try:
        text_page = page.get_textpage()
        text: str = text_page.get_text_bounded()
        return _right_to_left_text(text_page) if _RIGHT_TO_LEFT.search(text) else text
    finally:
        page.close()


def _right_to_left_text(page: pypdfium2.PdfTextPage) -> str:
    """Return a page's text with the letters of each ligature in their order.

    PDFium turns right-to-left lines around letter by letter, and with them the letters that one glyph stands
    for, such as lam-alef. Letters of one glyph have the same box.
    """
    pieces: list[str] = []
    box = None
    for index in range(page.count_chars()):
        char = chr(pdfium.FPDFText_GetUnicode(page, index))
        previous, box = box, page.get_charbox(index) if _RIGHT_TO_LEFT.match(char) else None
        if box is not None and box == previous:
            pieces[-1] = char + pieces[-1]
        else:
            pieces.append(char)
    return "".join(pieces)


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
