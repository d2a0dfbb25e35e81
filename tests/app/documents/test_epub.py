from __future__ import annotations

import pytest

from tests.app.documents import samples
from tests.app.documents.conftest import Read, Refusal

PAGE = '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>{}</html>'.format


def test_chapters_come_in_the_order_of_the_spine(read: Read) -> None:
    seen: list[tuple[int, int]] = []
    file = samples.epub(
        {
            "z%20first.xhtml": PAGE("<body><h1>One</h1><p>Caf&#233;&nbsp;au lait</p></body>"),
            "a.xhtml": PAGE('<body><h1>Two</h1><p><a id="x"/>Ünd <i>so</i> weiter</p></body>'),
        },
        title="Ein Buch",
    )
    document = read("a.epub", file, on_progress=lambda *parts: seen.append(parts))
    assert document.text == "# One\n\nCafé\u00a0au lait\n\n# Two\n\nÜnd so weiter"
    assert (document.kind, document.title, document.num_pages) == ("epub", "Ein Buch", None)
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_chapter_that_is_missing_is_left_out(read: Read) -> None:
    file = samples.epub({"a.xhtml": PAGE("<body><p>here</p></body>")})
    members = samples.members(file)
    opf = members["OEBPS/content.opf"].replace(b"<spine>", b'<spine><itemref idref="gone"/>')
    assert read("a.epub", samples.zipped({**members, "OEBPS/content.opf": opf})).text == "here"


def test_a_protected_book_is_named(refusal: Refusal) -> None:
    encryption = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
        '<enc:CipherReference URI="{}"/></enc:CipherData></enc:EncryptedData></encryption>'
    ).format
    chapters = {"a.xhtml": PAGE("<body><p>here</p></body>")}
    protected = samples.epub(chapters, extra={"META-INF/encryption.xml": encryption("OEBPS/a.xhtml")})
    assert "DRM" in refusal("a.epub", protected)


def test_a_book_with_scrambled_fonts_is_not_protected(read: Read) -> None:
    encryption = (
        '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
        '<enc:CipherReference URI="OEBPS/font.otf"/></encryption>'
    )
    chapters = {"a.xhtml": PAGE("<body><p>here</p></body>")}
    assert (
        read("a.epub", samples.epub(chapters, extra={"META-INF/encryption.xml": encryption})).text == "here"
    )


def test_a_damaged_book_is_named(refusal: Refusal) -> None:
    whole = samples.epub({"a.xhtml": PAGE("<body><p>here</p></body>")})
    assert "the EPUB file seems to be damaged" in refusal("a.epub", whole[:-40])
    assert "the EPUB file seems to be damaged" in refusal("a.epub", samples.epub({}))
    no_package = samples.zipped({"META-INF/container.xml": "<container/>"})
    assert "the EPUB file seems to be damaged" in refusal("a.epub", no_package)


def test_a_book_without_text_is_refused(refusal: Refusal) -> None:
    assert "holds no text" in refusal("a.epub", samples.epub({"a.xhtml": PAGE("<body><img/></body>")}))


@pytest.mark.parametrize("limit", ["MAX_MEMBER_NBYTES", "MAX_UNPACKED_NBYTES"])
def test_a_zip_bomb_stops_at_the_limit(refusal: Refusal, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(f"app.documents.archive.{limit}", 1_000_000)
    file = samples.epub({"a.xhtml": b"<p>" + bytes(1_500_000), "b.xhtml": b"<p>" + bytes(1_500_000)})
    assert len(file) < 10_000
    assert "unpacks to more than 1.0 MB" in refusal("bomb.epub", file)


def test_a_password_on_the_zip_is_named(refusal: Refusal) -> None:
    file = bytearray(samples.epub({"a.xhtml": PAGE("<body><p>here</p></body>")}))
    start = file.index(b"PK\x01\x02")
    while start != -1:
        file[start + 8] |= 1  # general purpose bit 0: encrypted
        start = file.find(b"PK\x01\x02", start + 1)
    assert "protected by a password" in refusal("a.epub", bytes(file))


def test_notes_in_another_chapter_are_found(read: Read) -> None:
    chapters = {
        "one.xhtml": '<p>An owl<a epub:type="noteref" href="notes.xhtml#n7">7</a>.</p>',
        "notes.xhtml": '<aside epub:type="footnote" id="n7"><p>A bird.</p></aside>',
    }
    assert read("a.epub", samples.epub(chapters)).text == "An owl[^7].\n\n[^7]: A bird."


def test_pages_of_the_printed_book_are_kept(read: Read) -> None:
    chapters = {
        "one.xhtml": '<h1><span epub:type="pagebreak" title="1"/>One</h1><p>first '
        '<span epub:type="pagebreak" title="2">2</span>second</p>',
        "two.xhtml": '<div role="doc-pagebreak" aria-label="Page 4"></div><p>fourth</p>',
    }
    document = read("a.epub", samples.epub(chapters))
    assert document.text == "# One\n\nfirst second\n\nfourth"
    assert document.num_pages == 4
    starts = document.page_starts
    assert [document.text[start : start + 6] for start in starts] == ["# One\n", "second", "fourth", "fourth"]


def test_page_numbers_that_make_no_sense_are_left_out(read: Read) -> None:
    chapters = {"one.xhtml": "".join(f'<p><b epub:type="pagebreak" title="{n}"/>x{n}</p>' for n in (1, 5, 3))}
    document = read("a.epub", samples.epub(chapters))
    assert (document.text, document.num_pages, document.page_starts) == ("x1\n\nx5\n\nx3", None, ())
