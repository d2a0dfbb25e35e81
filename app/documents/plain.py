"""Plain text, Markdown and code: kept as they are, apart from encoding and newlines."""

from __future__ import annotations

import re

from app.documents.cleaning import clean_text
from app.documents.encodings import Decoded, decode, is_binary
from app.documents.extracted import Extracted
from app.documents.formats import Format
from app.documents.limits import MAX_FILE_NBYTES
from app.documents.places import Places
from app.documents.refusals import refuse_binary, refuse_too_large
from app.documents.source import Source

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FIRST_HEADING = re.compile(r"\A\s*#\s+(.+?)\s*#*\s*$", re.MULTILINE)


def read_plain(source: Source, encoding: str | None) -> Extracted:
    """Read text that needs no further parsing."""
    decoded = decode_source(source, encoding)
    return Extracted(clean_text(decoded.text), encoding=decoded.encoding, encoding_guessed=decoded.guessed)


def read_markdown(source: Source, encoding: str | None) -> Extracted:
    """Read Markdown; a heading on the first line is its title, where no other one is of the first level."""
    decoded = decode_source(source, encoding)
    text = clean_text(decoded.text)
    body = _FRONT_MATTER.sub("", text, count=1)
    heading = _FIRST_HEADING.match(body)
    is_only_one = [each.level for each in Places.of(body, Format.MARKDOWN.value).headings].count(1) == 1
    title = heading[1] if heading and is_only_one else None
    return Extracted(text, title, encoding=decoded.encoding, encoding_guessed=decoded.guessed)


def decode_source(source: Source, encoding: str | None, declared: str | None = None) -> Decoded:
    """Return the whole file as text; `declared` is the encoding that it claims for itself."""
    limit = MAX_FILE_NBYTES[Format.TEXT]
    data = source.read(limit + 1)
    if len(data) > limit:
        raise refuse_too_large(source, len(data), Format.TEXT, limit)
    if encoding is None and declared is None and is_binary(data):
        raise refuse_binary(source)
    return decode(data, source.name, encoding=encoding, declared=declared)
