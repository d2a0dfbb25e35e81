"""Small files for the tests, each made by hand from what its format's standard says."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    title: str = "",
    trailer: str = "",
    pictures: bool = False,
    bad_pages: int = 0,
) -> bytes:
    """Return a PDF with the given lines on each page.

    `pictures` puts a picture on every page, `bad_pages` appends pages that are none, `trailer` adds entries
    to the trailer.
    """
    font, image, info, first_page = 3, 4, 5, 6
    kids = [first_page + 2 * index for index in range(len(pages))]
    references = " ".join(f"{kid} 0 R" for kid in [*kids, *range(9000, 9000 + bad_pages)])
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Count {len(pages) + bad_pages} /Kids [{references}] >>".encode(),
        font: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        image: _stream(
            b"\xff",
            "/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray",
        ),
        info: f"<< /Title <{title.encode('utf-16').hex()}> >>".encode() if title else b"<< >>",
    }
    for kid, lines in zip(kids, pages, strict=True):
        objects[kid] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {kid + 1} 0 R "
            f"/Resources << /Font << /F1 {font} 0 R >> /XObject << /I1 {image} 0 R >> >> >>"
        ).encode()
        text = b" ".join(b"(" + _escaped(line) + b") Tj T*" for line in lines)
        drawing = b" q 100 0 0 100 50 50 cm /I1 Do Q" if pictures else b""
        objects[kid + 1] = _stream(b"BT /F1 12 Tf 14 TL 50 780 Td " + text + b" ET" + drawing)
    return _pdf_file(objects, f"/Info {info} 0 R {trailer}")


def encrypted_pdf() -> bytes:
    """Return a PDF with an encryption dictionary that no empty password opens."""
    entry = "<" + "5a" * 32 + ">"
    return pdf(
        [["secret"]],
        trailer=f"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O {entry} /U {entry} >>",
    )


def pdf_bomb(line: bytes, num_bytes: int) -> bytes:
    """Return a small PDF of one page, whose content unpacks to about so many bytes of `line`."""
    block = line * ((1 << 20) // len(line))
    packer = zlib.compressobj(9)
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = zlib.compress(first + again * (num_bytes >> 20), 9)
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        4: _stream(packed, "/Filter [/FlateDecode /FlateDecode]"),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    return _pdf_file(objects, "")


@dataclass(frozen=True)
class Words:
    """Words at a place on a page, in points from the bottom left."""

    x: float
    y: float
    text: str
    size: float = 10
    font: str = "plain"


def placed_pdf(
    pages: Sequence[Sequence[Words]],
    *,
    outline: Sequence[tuple[str, int, int]] = (),
    links: Mapping[str, tuple[float, float, float, float]] | None = None,
    meanings: Mapping[str, str] | None = None,
    turn: str = "1 0 0 1 0 0",
) -> bytes:
    """Return a PDF with words where they are said to be, written in their order.

    `outline` has titles with their level from 1 and the index of their page; `links` has addresses with the
    left, bottom, right and top of where they are on the first page; `turn` is a matrix for all that is shown;
    `meanings` are what letters stand for, where not for themselves.
    """
    fonts = {"plain": "Helvetica", "bold": "Helvetica-Bold", "code": "Courier"}
    objects = {
        10 + index: (
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding "
            f"{'/ToUnicode 19 0 R' if meanings else ''} >>"
        ).encode()
        for index, name in enumerate(fonts.values())
    }
    objects[19] = _stream(_character_map({f"{ord(k):02X}": v for k, v in (meanings or {}).items()}).encode())
    resources = " ".join(f"/{font} {10 + index} 0 R" for index, font in enumerate(fonts))
    kids = [100 + 2 * index for index in range(len(pages))]
    annotations = [
        f"<< /Type /Annot /Subtype /Link /Rect [{' '.join(map(str, box))}] "
        f"/A << /S /URI /URI ({address}) >> >>"
        for address, box in (links or {}).items()
    ]
    for index, (kid, page) in enumerate(zip(kids, pages, strict=True)):
        shown = b" ".join(
            f"BT /{words.font} {words.size} Tf {words.x} {words.y} Td (".encode()
            + _escaped(words.text)
            + b") Tj ET"
            for words in page
        )
        objects[kid] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {kid + 1} 0 R "
            f"/Annots [{' '.join(annotations) if index == 0 else ''}] "
            f"/Resources << /Font << {resources} >> >> >>"
        ).encode()
        objects[kid + 1] = _stream(f"{turn} cm ".encode() + shown)
    objects[2] = (
        f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode()
    )
    objects |= _outline(outline, kids)
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines 20 0 R >>"
    return _pdf_file(dict(sorted(objects.items())), "")


def _outline(entries: Sequence[tuple[str, int, int]], kids: Sequence[int]) -> dict[int, bytes]:
    """Return the objects of an outline, of which each entry of level 2 is below the last of level 1."""
    numbers = {index: 21 + index for index in range(len(entries))}
    objects = {}
    for parent in (None, *(index for index, entry in enumerate(entries) if entry[1] == 1)):
        children = [index for index in numbers if _parent(entries, index) == parent]
        links = f"/First {numbers[children[0]]} 0 R /Last {numbers[children[-1]]} 0 R" if children else ""
        own = "" if parent is None else _outline_entry(entries, numbers, kids, parent)
        objects[20 if parent is None else numbers[parent]] = f"<< {links} {own} >>".encode()
    for index, entry in enumerate(entries):
        if entry[1] != 1:
            objects[numbers[index]] = f"<< {_outline_entry(entries, numbers, kids, index)} >>".encode()
    return objects


def _outline_entry(
    entries: Sequence[tuple[str, int, int]], numbers: Mapping[int, int], kids: Sequence[int], index: int
) -> str:
    """Return the title, the parent, the next sibling and the page of an outline's entry."""
    title, _, page = entries[index]
    parent = _parent(entries, index)
    siblings = [other for other in numbers if other > index and _parent(entries, other) == parent]
    following = f"/Next {numbers[siblings[0]]} 0 R" if siblings else ""
    above = 20 if parent is None else numbers[parent]
    title = title.encode("utf-16").hex()
    return f"/Title <{title}> /Parent {above} 0 R {following} /Dest [{kids[page]} 0 R /Fit]"


def _parent(entries: Sequence[tuple[str, int, int]], index: int) -> int | None:
    """Return the entry above one, None for those of level 1."""
    if entries[index][1] == 1:
        return None
    return max(other for other in range(index) if entries[other][1] == 1)


def pdf_with_glyphs(glyphs: Sequence[int], meanings: Mapping[int, str]) -> bytes:
    """Return a PDF whose one line shows glyphs from left to right, each standing for some characters."""
    cmap = _character_map({f"{glyph:04X}": text for glyph, text in meanings.items()})
    shown = "".join(f"{glyph:04X}" for glyph in glyphs)
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        4: _stream(f"BT /F1 16 Tf 50 200 Td <{shown}> Tj ET".encode()),
        5: (
            b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [6 0 R] "
            b"/ToUnicode 7 0 R >>"
        ),
        6: (
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 600 /FontDescriptor 8 0 R "
            b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
        ),
        7: _stream(cmap.encode()),
        8: (
            b"<< /Type /FontDescriptor /FontName /X /Flags 4 /FontBBox [0 0 1000 1000] /Ascent 800 "
            b"/Descent -200 /ItalicAngle 0 /CapHeight 700 /StemV 80 >>"
        ),
    }
    return _pdf_file(objects, "")


def _character_map(meanings: Mapping[str, str]) -> str:
    """Return what says which characters the codes of a font stand for; the codes are in hexadecimal."""
    mapping = "\n".join(f"<{code}> <{text.encode('utf-16-be').hex()}>" for code, text in meanings.items())
    width = len(next(iter(meanings), "00"))
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange "
        f"<{'0' * width}> <{'F' * width}> endcodespacerange {len(meanings)} beginbfchar\n{mapping}\n"
        "endbfchar endcmap end end"
    )


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def epub(
    chapters: Mapping[str, str | bytes], *, title: str = "A Book", extra: Mapping[str, str] | None = None
) -> bytes:
    """Return an EPUB with the given chapters in their order; the members lie in the reverse of it."""
    items = "".join(
        f'<item id="c{index}" href="{name}" media-type="application/xhtml+xml"/>'
        for index, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{index}"/>' for index in range(len(chapters)))
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<?xml version="1.0"?>'
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>'
        "</rootfiles></container>"
    )
    texts = {f"OEBPS/{name.replace('%20', ' ')}": text for name, text in reversed(chapters.items())}
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/content.opf": package,
            **texts,
            **(extra or {}),
        }
    )


def docx(
    body: str, *, links: Mapping[str, str] | None = None, num_pages: int | None = None, **parts: str
) -> bytes:
    """Return a DOCX with `body` inside `<w:body>` and the other parts of `word/`, such as `styles`.

    `links` are addresses by the `r:id` of hyperlinks, `num_pages` are those that the program had counted.
    """
    word = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    )
    more = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    relations = "".join(
        f'<Relationship Id="r{index}" Type="{office}/{name}" Target="{name}.xml"/>'
        for index, name in enumerate(parts)
    )
    relations += "".join(
        f'<Relationship Id="{link}" Type="{office}/hyperlink" Target="{address}" TargetMode="External"/>'
        for link, address in (links or {}).items()
    )
    extended = "http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"
    pages = "" if num_pages is None else f"<Pages>{num_pages}</Pages>"
    return zipped(
        {
            "docProps/app.xml": f'<Properties xmlns="{extended}">{pages}</Properties>',
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": (
                f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{office}/officeDocument" '
                'Target="word/document.xml"/></Relationships>'
            ),
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}">{relations}</Relationships>',
            "word/document.xml": f"<w:document {word} {more}><w:body>{body}</w:body></w:document>",
            **{
                f"word/{name}.xml": f"<w:{name} {word}>{content}</w:{name}>"
                for name, content in parts.items()
            },
        }
    )


def _pdf_file(objects: Mapping[int, bytes], trailer: str) -> bytes:
    """Return the objects as a file with a cross-reference table."""
    file = io.BytesIO()
    file.write(b"%PDF-1.4\n")
    offsets = {}
    for number, content in objects.items():
        offsets[number] = file.tell()
        file.write(b"%d 0 obj\n%b\nendobj\n" % (number, content))
    start = file.tell()
    size = max(objects) + 1
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % size)
    for number in range(1, size):
        in_use = b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
        file.write(in_use)
    file.write(f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode())
    return file.getvalue()


def _stream(data: bytes, entries: str = "") -> bytes:
    """Return a stream object."""
    return f"<< /Length {len(data)} {entries} >>\nstream\n".encode() + data + b"\nendstream"


def _escaped(text: str) -> bytes:
    """Return a line as the inside of a PDF string."""
    return text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def members(file: bytes) -> dict[str, bytes]:
    """Return the members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
