"""From bytes to text: which encoding, and how sure that is."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.documents.document import DocumentError

_LABELS = {
    "utf-8": "Unicode (UTF-8)",
    "utf-16-le": "Unicode (UTF-16 LE)",
    "utf-16-be": "Unicode (UTF-16 BE)",
    "windows-1252": "Western European (Windows-1252)",
    "iso-8859-15": "Western European (ISO-8859-15)",
    "mac-roman": "Western European (Mac)",
    "cp850": "Western European (DOS 850)",
    "windows-1250": "Central European (Windows-1250)",
    "iso-8859-2": "Central European (ISO-8859-2)",
    "windows-1251": "Cyrillic (Windows-1251)",
    "koi8-r": "Cyrillic (KOI8-R)",
    "cp866": "Cyrillic (DOS 866)",
    "gb18030": "Chinese, simplified (GB18030)",
    "big5": "Chinese, traditional (Big5)",
    "shift_jis": "Japanese (Shift_JIS)",
    "euc-jp": "Japanese (EUC-JP)",
    "euc-kr": "Korean (EUC-KR)",
    "windows-1253": "Greek (Windows-1253)",
    "windows-1254": "Turkish (Windows-1254)",
    "windows-1255": "Hebrew (Windows-1255)",
    "windows-1256": "Arabic (Windows-1256)",
    "windows-1257": "Baltic (Windows-1257)",
    "windows-1258": "Vietnamese (Windows-1258)",
    "cp874": "Thai (Windows-874)",
}
ENCODINGS: tuple[str, ...] = tuple(_LABELS)
"""The encodings to choose from, the common ones first; `encoding_label` names them for people."""

_OLD_ENCODINGS = [name for name in ENCODINGS if not name.startswith("utf")]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What files that name the smaller set really hold, as browsers read them.
_SUPERSETS = {
    "ascii": "windows-1252",
    "iso8859-1": "windows-1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_CONTROL_BYTES = bytes(byte for byte in range(32) if byte not in b"\b\t\n\v\f\r\x1b") + b"\x7f"
_UTF8_STARTS = bytes(range(0xC2, 0xF5))
_MAX_CONTROL_SHARE = 0.02
_MAX_BROKEN_SHARE = 0.1
_NO_TEXT = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd-\uffff]")
_GUESS_NBYTES = 65_536
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_DECLARED_NBYTES = 4096


@dataclass(frozen=True)
class Decoded:
    """Text with the encoding it was read in, and whether that is a guess."""

    text: str
    encoding: str
    guessed: bool


def encoding_label(encoding: str) -> str:
    """Return an encoding's name for people, such as `Cyrillic (KOI8-R)`."""
    return _LABELS.get(encoding, encoding)


def decode(data: bytes, name: str, *, encoding: str | None = None, declared: str | None = None) -> Decoded:
    """Return the `data` of the file called `name` as text.

    In this order: `encoding`, the user's choice; a byte order mark; `declared`, what the file says of itself;
    UTF-8; a guess. Raises `DocumentError` when `encoding` is unknown or does not fit.
    """
    if encoding is not None:
        return Decoded(_decode_as_chosen(data, name, encoding), encoding, False)
    for mark, marked in _BOMS:
        if data.startswith(mark):
            return Decoded(data[len(mark) :].decode(marked, "replace"), marked, False)
    for candidate in filter(None, (declared, "utf-8")):
        text = _decode_strictly(data, candidate)
        if text is not None:
            return Decoded(text, _listed_name(candidate), False)
    return _decode_by_guess(data)


def is_binary(data: bytes) -> bool:
    """Return whether `data`, a whole file or its start, holds something other than text."""
    if data.startswith(tuple(mark for mark, _ in _BOMS)) or _utf16_order(data):
        return False
    num_controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    return num_controls > _MAX_CONTROL_SHARE * len(data)


def _decode_as_chosen(data: bytes, name: str, encoding: str) -> str:
    """Decode as the user wants it."""
    if not _is_known(encoding):
        raise DocumentError(
            f"{name} cannot be read as “{encoding}”: there is no such text encoding. "
            "Choose one such as utf-8, windows-1252 or gb18030."
        )
    text = _decode_strictly(data, encoding)
    if text is None:
        raise DocumentError(f"{name} is not in {encoding_label(encoding)}. Choose another encoding.")
    return text


def _is_known(encoding: str) -> bool:
    """Return whether Python has an encoding of this name for text."""
    try:
        "a".encode(encoding)
    except UnicodeError:
        return True
    except (LookupError, ValueError):
        return False
    return True


def _decode_strictly(data: bytes, encoding: str) -> str | None:
    """Return `data` decoded, None when it does not fit or the encoding is unknown."""
    try:
        name = codecs.lookup(encoding).name
        return data.decode(_SUPERSETS.get(name, name))
    except (LookupError, ValueError):
        return None


def _decode_by_guess(data: bytes) -> Decoded:
    """Try what is left: UTF-16 without a mark, UTF-8 with a few broken bytes, the likeliest old encoding."""
    order = _utf16_order(data)
    if order is not None:
        return Decoded(data.decode(order, "replace"), order, True)
    repaired = data.decode("utf-8", "replace")
    num_broken = repaired.count("�")
    num_wide = len(data) - len(data.translate(None, _UTF8_STARTS))
    if num_broken <= _MAX_BROKEN_SHARE * num_wide:
        return Decoded(repaired, "utf-8", True)
    return _decode_old(data)


def _decode_old(data: bytes) -> Decoded:
    """Decode in one of the encodings from before Unicode: the likeliest, or else the commonest that fits."""
    for name in [*_ranked_by_likelihood(data), *_OLD_ENCODINGS]:
        text = _decode_strictly(data, name)
        if text is not None:
            return Decoded(text, name, True)
    return Decoded(data.decode("windows-1252", "replace"), "windows-1252", True)


def _ranked_by_likelihood(data: bytes) -> list[str]:
    """Return the encodings that charset-normalizer finds fit to read `data` in, the likeliest first.

    It also tells which others give the very same text. Among equals the commoner comes first.
    """
    from charset_normalizer import from_bytes  # here: most files never need it, and it takes long to import

    names = {codecs.lookup(name).name.replace("-", "_"): name for name in _OLD_ENCODINGS}
    ranked = []
    for match in from_bytes(_telling_lines(data), cp_isolation=list(names)):
        alike = [names[found] for found in match.could_be_from_charset if found in names]
        ranked += [(match.chaos, -match.coherence, _OLD_ENCODINGS.index(name), name) for name in alike]
    return [name for *_, name in sorted(ranked)]


def _telling_lines(data: bytes) -> bytes:
    """Return the first lines that hold more than ASCII: only they tell one encoding from another."""
    lines = re.findall(rb"[^\n]*[\x80-\xff][^\n]*\n?", data[: 64 * _GUESS_NBYTES])
    return b"".join(_take(lines, _GUESS_NBYTES)) or data[:_GUESS_NBYTES]


def _take(lines: Iterable[bytes], nbytes: int) -> Iterable[bytes]:
    """Yield lines until `nbytes` are reached."""
    for line in lines:
        yield line[:nbytes]
        nbytes -= len(line)
        if nbytes <= 0:
            return


def _utf16_order(data: bytes) -> str | None:
    """Return the UTF-16 without a byte order mark that `data` looks like: every other byte is mostly zero."""
    sample = data[:_GUESS_NBYTES]
    half = len(sample) // 2
    if half == 0:
        return None
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if max(even, odd) < 0.4 or min(even, odd) > 0.1:
        return None
    order = "utf-16-le" if odd > even else "utf-16-be"
    text = sample[: 2 * half].decode(order, "replace")
    return order if len(_NO_TEXT.findall(text)) <= _MAX_CONTROL_SHARE * half else None


def _listed_name(encoding: str) -> str:
    """Return the name in `ENCODINGS` of the same encoding or the one that contains it, else `encoding`."""
    wanted = codecs.lookup(encoding).name
    wanted = _SUPERSETS.get(wanted, wanted)
    for name in ENCODINGS:
        listed = codecs.lookup(name).name
        if wanted in (listed, _SUPERSETS.get(listed, listed)):
            return name
    return wanted


def declared_encoding(head: bytes) -> str | None:
    """Return the encoding that a page names in its first lines."""
    match = _DECLARED.search(head[:_DECLARED_NBYTES])
    name = (match[1] or match[2]).decode("ascii", "replace") if match else None
    # A page whose declaration can be read as ASCII is in no UTF-16, whatever it says.
    return None if name is None or name.lower().startswith("utf-16") else name
