"""Which format a file has: by its content first, by its name second."""

from __future__ import annotations

import codecs
import re
import zipfile

from app.documents.document import DocumentError
from app.documents.encodings import is_binary
from app.documents.formats import SUFFIXES, Format
from app.documents.refusals import refuse_binary, refuse_known, refuse_zip
from app.documents.source import Source

_PDF_HEADER_NBYTES = 1024
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_PACKAGES = (Format.DOCX, Format.EPUB)
_HTML_START = re.compile(
    rb"\A(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype\s+html|<html[\s>])",
    re.IGNORECASE | re.DOTALL,
)


def detect_format(source: Source, *, is_text: bool) -> Format:
    """Return the format to read `source` as; raise `DocumentError` for what is not read.

    `is_text` says that the user knows a file without a format of its own to be text.
    """
    if _is_pdf(source):
        return Format.PDF
    if source.head.startswith(_ZIP_STARTS):
        return _package_format(source)
    refuse_known(source)
    named = SUFFIXES.get(source.suffix, Format.TEXT)
    if is_binary(source.head) and not is_text:
        raise damaged(source, named) if named in (Format.PDF, *_PACKAGES) else refuse_binary(source)
    if named is Format.CODE or named is Format.MARKDOWN:
        return named
    if _HTML_START.match(source.head):
        return Format.HTML
    return named if named is Format.HTML else Format.TEXT


def damaged(source: Source, form: Format) -> DocumentError:
    """Say that a file cannot be parsed as what it is."""
    kind = f"{form.value.upper()} file" if form in (Format.PDF, Format.HTML, *_PACKAGES) else "file"
    return DocumentError(
        f"{source.name} could not be read: the {kind} seems to be damaged. "
        "Get another copy, or open it in its own program and save it again."
    )


def _is_pdf(source: Source) -> bool:
    """Return whether this is a PDF; some carry a few stray bytes before the header."""
    if source.head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"%PDF-"):
        return True
    return SUFFIXES.get(source.suffix) is Format.PDF and b"%PDF-" in source.head[:_PDF_HEADER_NBYTES]


def _package_format(source: Source) -> Format:
    """Tell DOCX and EPUB from other zip files."""
    try:
        source.file.seek(0)
        with zipfile.ZipFile(source.file) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        named = SUFFIXES.get(source.suffix)
        if named in _PACKAGES:
            raise damaged(source, named) from error
        raise refuse_zip(source, set()) from error
    if "_rels/.rels" in members and any(member.startswith("word/") for member in members):
        return Format.DOCX
    if "META-INF/container.xml" in members:
        return Format.EPUB
    raise refuse_zip(source, members)
