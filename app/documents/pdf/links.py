"""The links of a PDF's page that lead out of the document."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.pdf.box import Box, turned

_MAX_LINKS = 500


@dataclass(frozen=True, slots=True)
class Link:
    """A place on a page that leads to `address`."""

    box: Box
    address: str

    def contains(self, x: float, y: float) -> bool:
        """Return whether a point is in it."""
        return self.box.left <= x <= self.box.right and self.box.bottom <= y <= self.box.top


def page_links(page: pypdfium2.PdfPage, rotation: int) -> list[Link]:
    """Return the links to addresses on a page that is turned by `rotation`, some hundreds at most."""
    links: list[Link] = []
    position = ctypes.c_int(0)
    link = pdfium.FPDF_LINK()
    while len(links) < _MAX_LINKS and pdfium.FPDFLink_Enumerate(page, position, link):
        action = pdfium.FPDFLink_GetAction(link)
        rect = pdfium.FS_RECTF()
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        if pdfium.FPDFLink_GetAnnotRect(link, rect) and (address := _address(page, action)):
            box = Box(rect.left, min(rect.bottom, rect.top), rect.right, max(rect.bottom, rect.top))
            links.append(Link(turned(box, rotation), address))
    return links


def _address(page: pypdfium2.PdfPage, action: object) -> str:
    """Return the address that an action opens."""
    size = pdfium.FPDFAction_GetURIPath(page.pdf, action, None, 0)
    if size <= 1:
        return ""
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDFAction_GetURIPath(page.pdf, action, buffer, size)
    return buffer.value.decode("utf-8", "replace").strip()
