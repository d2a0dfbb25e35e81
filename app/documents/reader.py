"""A file's text, read in this process; `app.documents.extract` does it in one of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from app.documents.cleaning import sensible_title
from app.documents.detect import damaged, detect_format
from app.documents.document import Document, DocumentError
from app.documents.extracted import Extracted, OnProgress
from app.documents.formats import Format
from app.documents.limits import MAX_FILE_NBYTES, MAX_TEXT_CHARS
from app.documents.refusals import refuse_too_large, refuse_too_long
from app.documents.source import Source, cannot_read, changed_while_read, open_source
from app.valid_unicode import valid_unicode

_TEXT_FORMATS = (Format.HTML, Format.MARKDOWN, Format.TEXT, Format.CODE)

_log = logging.getLogger(__name__)


def read_document(
    path: Path,
    *,
    encoding: str | None = None,
    on_open: Callable[[], None] | None = None,
    on_progress: OnProgress | None = None,
) -> Document:
    """Return the text of the file at `path`; raise `DocumentError` when it cannot be read.

    `encoding` is the user's choice for a file that is text; other formats have their own. `on_open` is called
    when the first bytes are there: a network drive that does not answer keeps them back.
    """
    with open_source(path) as source:
        if on_open is not None:
            on_open()
        form = detect_format(source, is_text=encoding is not None)
        _check_size(source, form)
        extracted = _extract(source, form, encoding, on_progress or (lambda done, total: None))
        if not extracted.text.strip():
            raise DocumentError(
                f"{source.name} holds no text. If its words are in pictures, "
                "run text recognition (OCR) on it first; else choose another file."
            )
        if len(extracted.text) > MAX_TEXT_CHARS:
            raise refuse_too_long(source)
        return Document(
            title=valid_unicode(sensible_title(extracted.title) or path.name),
            source=valid_unicode(str(path)),
            kind=form.value,
            text=extracted.text,
            num_pages=extracted.num_pages,
            num_textless_pages=extracted.num_textless_pages,
            encoding=extracted.encoding,
            encoding_guessed=extracted.encoding_guessed,
            page_starts=extracted.page_starts,
        )


def _check_size(source: Source, form: Format) -> None:
    """Refuse a file that is too large before it is read."""
    limit = MAX_FILE_NBYTES[form]
    if source.nbytes > limit:
        raise refuse_too_large(source, source.nbytes, form, limit)


def _extract(source: Source, form: Format, encoding: str | None, on_progress: OnProgress) -> Extracted:
    """Read the file with the reader of its format; a parser's failure becomes a `DocumentError`."""
    try:
        extracted = _reader(form)(source, encoding, on_progress)
    except DocumentError:
        raise
    except OSError as error:
        raise cannot_read(error, source.name) from error
    except MemoryError as error:
        raise DocumentError(
            f"{source.name} needs more memory to read than is allowed. Split it into smaller files."
        ) from error
    except Exception as error:  # parsers of foreign files fail in too many ways to name
        _log.info("%s could not be parsed", source.name, exc_info=True)
        raise (changed_while_read(source.name) if source.has_changed() else damaged(source, form)) from error
    if source.has_changed() and not (form in _TEXT_FORMATS and source.has_grown()):
        raise changed_while_read(source.name)
    return extracted


def _reader(form: Format) -> Callable[[Source, str | None, OnProgress], Extracted]:
    """Return the reader of a format, imported only now: a process that reads one file starts fast."""
    if form is Format.PDF:
        from app.documents.pdf.reader import read_pdf

        return lambda source, encoding, on_progress: read_pdf(source, on_progress)
    if form is Format.DOCX:
        from app.documents.docx import read_docx

        return lambda source, encoding, on_progress: read_docx(source)
    if form is Format.EPUB:
        from app.documents.epub import read_epub

        return lambda source, encoding, on_progress: read_epub(source, on_progress)
    if form is Format.HTML:
        from app.documents.html import read_html

        return lambda source, encoding, on_progress: read_html(source, encoding)
    from app.documents.plain import read_markdown, read_plain

    read = read_markdown if form is Format.MARKDOWN else read_plain
    return lambda source, encoding, on_progress: read(source, encoding)
