"""Formats that are known and not read, each with what to do instead."""

from __future__ import annotations

from app.documents.document import DocumentError
from app.documents.formats import READABLE, Format
from app.documents.limits import MAX_TEXT_CHARS
from app.documents.source import Source
from engine.wording import format_nbytes

_PICTURE = "is a picture. Run text recognition (OCR) on it and choose the text or PDF that comes out."
_SOUND = "is a sound recording. Write it down with a speech recognition program and choose the text."
_VIDEO = "is a video. Write it down with a speech recognition program and choose the text."
_ARCHIVE = "is an archive. Unpack it and choose the files inside."
_WORD = "is an old Word document. Open it in Word or LibreOffice, save it as DOCX or PDF, and choose that."
_WRITER = "is a word processor document that cannot be read. Save it as DOCX or PDF and choose that."
_SPREADSHEET = "is a spreadsheet. Save it as CSV or PDF and choose that."
_SLIDES = "is a presentation. Save it as PDF and choose that."
_OLD_OFFICE = "is an old Office file. Save it in today's format or as PDF and choose that."
_EBOOK = "is an e-book in a format that cannot be read. Convert it to EPUB or PDF and choose that."
_WEB_ARCHIVE = "is a web archive. Save the page as HTML or PDF and choose that."
_PRINT = "is a print file. Convert it to PDF and choose that."
_PROGRAM = "is a program and not a document."
_DATABASE = "is a database. Export the rows that matter as CSV and choose that."
_MODEL = "is a model and not a document. Add it under the models."
_PASSWORD = (
    "is protected by a password. Open it in its own program, save a copy without the password, and choose "
    "that copy."
)
_BINARY = f"holds binary data and no text. Choose {READABLE}."

_BY_START = {
    b"\x89PNG": _PICTURE,
    b"\xff\xd8\xff": _PICTURE,
    b"GIF8": _PICTURE,
    b"II*\x00": _PICTURE,
    b"MM\x00*": _PICTURE,
    b"8BPS": _PICTURE,
    b"\x00\x00\x01\x00": _PICTURE,
    b"AT&TFORM": _PICTURE,
    b"ID3": _SOUND,
    b"OggS": _SOUND,
    b"fLaC": _SOUND,
    b"\x1aE\xdf\xa3": _VIDEO,
    b"7z\xbc\xaf\x27\x1c": _ARCHIVE,
    b"Rar!\x1a\x07": _ARCHIVE,
    b"\x1f\x8b": _ARCHIVE,
    b"BZh": _ARCHIVE,
    b"\xfd7zXZ\x00": _ARCHIVE,
    b"\x28\xb5\x2f\xfd": _ARCHIVE,
    b"{\\rtf": _WRITER,
    b"%!PS": _PRINT,
    b"\x7fELF": _PROGRAM,
    b"MZ\x90\x00": _PROGRAM,
    b"\xcf\xfa\xed\xfe": _PROGRAM,
    b"\xca\xfe\xba\xbe": _PROGRAM,
    b"SQLite format 3\x00": _DATABASE,
    b"GGUF": _MODEL,
}
_BY_RIFF_TYPE = {b"WEBP": _PICTURE, b"WAVE": _SOUND, b"AVI ": _VIDEO}
_BY_FTYP_BRAND = {b"heic": _PICTURE, b"heix": _PICTURE, b"mif1": _PICTURE, b"avif": _PICTURE, b"M4A ": _SOUND}
_BY_SUFFIX = {
    suffix: refusal
    for refusal, suffixes in {
        _PICTURE: ".png .jpg .jpeg .gif .bmp .tif .tiff .webp .heic .heif .avif .ico .psd .djvu .cr2",
        _SOUND: ".mp3 .wav .flac .ogg .opus .m4a .aac .wma .aiff .amr",
        _VIDEO: ".mp4 .m4v .mov .avi .mkv .webm .wmv .mpg .mpeg .3gp",
        _ARCHIVE: ".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .dmg .iso .jar .whl .deb .rpm",
        _WORD: ".doc .dot",
        _WRITER: ".rtf .odt .ott .fodt .pages .wpd .sxw .hwp",
        _SPREADSHEET: ".xls .xlsx .xlsm .xlsb .ods .numbers",
        _SLIDES: ".ppt .pptx .pptm .pps .ppsx .odp .key",
        _EBOOK: ".mobi .azw .azw3 .kfx .prc .lit .fb2",
        _WEB_ARCHIVE: ".mht .mhtml .webarchive",
        _PRINT: ".ps .eps .xps",
        _PROGRAM: ".exe .dll .so .dylib .o .a .class .pyc .wasm",
        _DATABASE: ".db .sqlite .sqlite3 .mdb .accdb .parquet",
        _MODEL: ".gguf .safetensors .onnx .pt .pth",
    }.items()
    for suffix in suffixes.split()
}
# Text to look at, and yet nothing that reads well as it is.
_TEXT_SUFFIXES = frozenset((".mht", ".mhtml", ".fb2", ".fodt"))
_BY_ZIP_MEMBER = {
    "xl/workbook.xml": _SPREADSHEET,
    "xl/workbook.bin": _SPREADSHEET,
    "ppt/presentation.xml": _SLIDES,
    "Index/Document.iwa": _WRITER,
    "Index/Slide.iwa": _SLIDES,
    "content.xml": _WRITER,
}
_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = {
    "EncryptedPackage": _PASSWORD,
    "WordDocument": _WORD,
    "PowerPoint Document": _SLIDES,
    "Workbook": _SPREADSHEET,
}


def refuse_known(source: Source) -> None:
    """Raise `DocumentError` when the file is of a format that is known and not read."""
    refusal = _refusal(source)
    if refusal is not None:
        raise DocumentError(f"{source.name} {refusal}")


def refuse_zip(source: Source, members: set[str]) -> DocumentError:
    """Say what the zip file with these `members` is, neither DOCX nor EPUB as it is."""
    for member, refusal in _BY_ZIP_MEMBER.items():
        if member in members:
            # OpenDocument files and Apple's differ by name only.
            return DocumentError(f"{source.name} {_BY_SUFFIX.get(source.suffix, refusal)}")
    return DocumentError(f"{source.name} {_ARCHIVE}")


def refuse_protected(source: Source) -> DocumentError:
    """Say that a file asks for a password."""
    return DocumentError(f"{source.name} {_PASSWORD}")


def refuse_too_large(source: Source, nbytes: int, form: Format, limit: int) -> DocumentError:
    """Say that a file has more bytes than are read of its format."""
    files = "text files" if form in (Format.TEXT, Format.CODE) else f"{form.value.upper()} files"
    return DocumentError(
        f"{source.name} is {format_nbytes(nbytes)}; {files} can be up to {format_nbytes(limit)}. "
        "Split it into smaller files."
    )


def refuse_too_long(source: Source) -> DocumentError:
    """Say that a file holds more text than is read."""
    return DocumentError(
        f"{source.name} holds more than {MAX_TEXT_CHARS:,} characters of text. Split it into smaller files."
    )


def refuse_binary(source: Source) -> DocumentError:
    """Say what a file is that holds no text and starts like nothing that is known."""
    return DocumentError(f"{source.name} {_BY_SUFFIX.get(source.suffix, _BINARY)}")


def _refusal(source: Source) -> str | None:
    """Return what is to be said about a file that starts like this one, None when nothing is."""
    head = source.head
    if head.startswith(_OLE_START):
        return _ole_refusal(source)
    if head.startswith(b"RIFF"):
        return _BY_RIFF_TYPE.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BY_FTYP_BRAND.get(head[8:12], _VIDEO)
    if head[257:262] == b"ustar":
        return _ARCHIVE
    if head[60:68] == b"BOOKMOBI":
        return _EBOOK
    if source.suffix in _TEXT_SUFFIXES:
        return _BY_SUFFIX[source.suffix]
    return next((refusal for start, refusal in _BY_START.items() if head.startswith(start)), None)


def _ole_refusal(source: Source) -> str:
    """Tell old Office files from encrypted new ones: both are OLE, with other streams inside."""
    source.file.seek(0)
    found: set[str] = set()
    tail = b""
    while block := source.file.read(1 << 20):
        window = tail + block
        found.update(name for name in _OLE_STREAMS if name.encode("utf-16-le") in window)
        tail = block[-64:]
    return next((refusal for name, refusal in _OLE_STREAMS.items() if name in found), _OLD_OFFICE)
