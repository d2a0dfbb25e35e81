"""The parts of a DOCX or EPUB, unpacked within bounds."""

from __future__ import annotations

import zipfile
import zlib
from types import TracebackType
from typing import Any

from lxml import etree

from app.documents.document import DocumentError
from app.documents.limits import MAX_MEMBER_NBYTES, MAX_UNPACKED_NBYTES
from app.documents.refusals import refuse_protected
from app.documents.source import Source
from engine.wording import format_nbytes

DUBLIN_CORE_TITLE = "{http://purl.org/dc/elements/1.1/}title"
"""The element that names a document, in DOCX and EPUB alike."""

_BLOCK_NBYTES = 1 << 20
_ENCRYPTED = 0x1


class Archive:
    """A zip file of which some members are read.

    Sizes are counted while unpacking, so a member that claims to be small gains nothing by it.
    """

    def __init__(self, source: Source) -> None:
        source.file.seek(0)
        self._source = source
        self._zip = zipfile.ZipFile(source.file)
        self._left_nbytes = MAX_UNPACKED_NBYTES
        self.members = set(self._zip.namelist())

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, member: str) -> bytes:
        """Return one member unpacked; `KeyError` when there is none, `DocumentError` when it is too large."""
        info = self._zip.getinfo(member)
        if info.flag_bits & _ENCRYPTED:
            raise refuse_protected(self._source)
        blocks = []
        num_bytes = 0
        with self._zip.open(info) as file:
            while block := file.read(_BLOCK_NBYTES):
                num_bytes += len(block)
                self._left_nbytes -= len(block)
                if num_bytes > MAX_MEMBER_NBYTES:
                    raise self._too_large(MAX_MEMBER_NBYTES)
                if self._left_nbytes < 0:
                    raise self._too_large(MAX_UNPACKED_NBYTES)
                blocks.append(block)
        return b"".join(blocks)

    def read_xml(self, member: str) -> Any:
        """Return the root element of an XML member; entities stay what they are, nothing is fetched."""
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
        )
        return etree.fromstring(self.read(member), parser)

    def read_xml_or_none(self, member: str) -> Any:
        """Return the root element of a member that may be missing or broken without doing harm."""
        try:
            return self.read_xml(member)
        except (
            KeyError,
            etree.XMLSyntaxError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
        ):
            return None

    def _too_large(self, limit_nbytes: int) -> DocumentError:
        """Say that the unpacked text exceeds a bound."""
        return DocumentError(
            f"{self._source.name} is {format_nbytes(self._source.nbytes)} and unpacks to more than "
            f"{format_nbytes(limit_nbytes)} of text, too much to be read. Split it into smaller files; "
            "if it came from a stranger, do not trust it."
        )
