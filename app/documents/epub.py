"""EPUB: the chapters in reading order, each a page of XHTML."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote

from app.documents.archive import DUBLIN_CORE_TITLE, Archive
from app.documents.document import DocumentError
from app.documents.encodings import declared_encoding, decode
from app.documents.extracted import Extracted, OnProgress
from app.documents.html import html_to_markdown, parse_html
from app.documents.page_marks import without_page_marks
from app.documents.source import Source

_CONTAINER = "META-INF/container.xml"
_ROOT_FILE = "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_OPF = "{http://www.idpf.org/2007/opf}"
_CIPHER_REFERENCE = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"


def read_epub(source: Source, on_progress: OnProgress) -> Extracted:
    """Read an e-book."""
    with Archive(source) as archive:
        package_path = archive.read_xml(_CONTAINER).find(f".//{_ROOT_FILE}").get("full-path")
        package = archive.read_xml(package_path)
        chapters = _chapters(package, posixpath.dirname(package_path), archive.members)
        if not chapters:
            raise ValueError("a book without chapters")
        if _encrypted(archive) & set(chapters):
            raise DocumentError(
                f"{source.name} is protected against copying (DRM) and cannot be read. "
                "Choose a copy without protection."
            )
        texts = []
        notes: dict[str, str] = {}
        for done, chapter in enumerate(chapters):
            on_progress(done, len(chapters))
            texts.append(_chapter_text(archive.read(chapter), source, notes))
        on_progress(len(chapters), len(chapters))
    text, page_starts = without_page_marks("\n\n".join(filter(None, texts)))
    title = package.findtext(f".//{DUBLIN_CORE_TITLE}")
    return Extracted(text, title, len(page_starts) or None, page_starts=page_starts)


def _chapters(package: Any, folder: str, members: set[str]) -> list[str]:
    """Return the members to read, in the order of the spine; those that are missing are left out."""
    paths = {}
    for item in package.iter(f"{_OPF}item"):
        if "html" in item.get("media-type", ""):
            paths[item.get("id")] = _member(folder, item.get("href", ""))
    spine = (paths.get(reference.get("idref")) for reference in package.iter(f"{_OPF}itemref"))
    return [path for path in spine if path in members and path is not None]


def _member(folder: str, href: str) -> str:
    """Return the member that a link relative to `folder` means."""
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))


def _encrypted(archive: Archive) -> set[str]:
    """Return the members that are encrypted; in books without protection these are fonts at most."""
    root = archive.read_xml_or_none("META-INF/encryption.xml")
    if root is None:
        return set()
    return {_member("", reference.get("URI", "")) for reference in root.iter(_CIPHER_REFERENCE)}


def _chapter_text(data: bytes, source: Source, notes: dict[str, str]) -> str:
    """Return one chapter as Markdown."""
    decoded = decode(data, source.name, declared=declared_encoding(data))
    return html_to_markdown(parse_html(decoded.text, source), notes)
