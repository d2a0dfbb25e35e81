from __future__ import annotations

import pytest

from app.documents.document import DocumentError
from app.documents.pdf.right_to_left import as_written, has_turned_brackets, reads_right_to_left
from app.documents.pdf.words import LINE_END_HYPHEN, SplitWords
from tests.app.documents import samples
from tests.app.documents.conftest import Read, Refusal


def test_pages_come_in_order_with_a_blank_line_between(read: Read) -> None:
    document = read("a.pdf", samples.pdf([["first line", "second line"], ["next page"]]))
    assert document.text == "first line\nsecond line\n\nnext page"
    assert (document.kind, document.num_pages, document.num_textless_pages) == ("pdf", 2, 0)
    assert document.encoding is None


def test_progress_runs_from_the_first_page_to_the_last(read: Read) -> None:
    seen: list[tuple[int, int]] = []
    read("a.pdf", samples.pdf([["one"], ["two"]]), on_progress=lambda *parts: seen.append(parts))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_title_comes_from_the_metadata_or_else_from_the_file_name(read: Read) -> None:
    assert read("a.pdf", samples.pdf([["x"]], title="Über Bäume")).title == "Über Bäume"
    assert read("b.pdf", samples.pdf([["x"]], title="Microsoft Word - final_v3.doc")).title == "b.pdf"
    assert read("c.pdf", samples.pdf([["x"]])).title == "c.pdf"


def test_words_split_at_line_ends_are_joined(read: Read) -> None:
    document = read(
        "a.pdf", samples.pdf([["this is a hy-", "phenated word and a well-", "known well-known one"]])
    )
    assert document.text == "this is a hyphenated word and a well-known well-known one"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("com|pile", "compile"),
        ("a well|known fact, well-known", "a well-known fact, well-known"),
        ("Anne|Marie", "Anne-Marie"),
        ("Java|Script is JavaScript", "JavaScript is JavaScript"),
        ("pages 10|12", "pages 10-12"),
        ("so | and", "so - and"),
    ],
)
def test_a_hyphen_stays_where_it_is_the_words_own(text: str, joined: str) -> None:
    text = text.replace("|", LINE_END_HYPHEN)
    assert SplitWords([text]).join(text) == joined


def test_dots_that_lead_to_page_numbers_are_shortened(read: Read) -> None:
    lines = ["1 Naming . . . . . . . . . . . . 3", "2 Use............................ 4", "and so on...."]
    assert read("a.pdf", samples.pdf([lines])).text == "1 Naming … 3\n2 Use … 4\nand so on...."


def test_letters_of_an_arabic_ligature_keep_their_order(read: Read) -> None:
    # Salam as Word and LibreOffice write it: from left to right meem, lam-alef in one glyph, seen.
    file = samples.pdf_with_glyphs([3, 2, 1], {1: "س", 2: "لا", 3: "م"})
    assert read("a.pdf", file).text == "سلام"
    # And as Qt does: each glyph placed by itself, the letters of one turned around in its meaning too.
    page = [samples.Words(50 - 7 * index, 700, letter) for index, letter in enumerate("ABC")]
    file = samples.placed_pdf([page], meanings={"A": "س", "B": "ال", "C": "م"})
    assert read("a.pdf", file).text == "سلام"


def test_signs_for_glyphs_become_the_letters_that_they_stand_for(read: Read) -> None:
    file = samples.pdf_with_glyphs([1, 2, 3, 4], {1: "ﬁ", 2: "⽂", 3: "⻓", 4: "ﬂ"})
    assert read("a.pdf", file).text == "fi文长fl"


def test_signs_beyond_sixteen_bits_are_whole(read: Read) -> None:
    file = samples.pdf_with_glyphs([1, 2, 3], {1: "𝑥", 2: "𠮟", 3: "🙂"})
    assert read("a.pdf", file).text == "𝑥𠮟🙂"


def test_a_sign_that_a_font_has_for_a_blank_is_no_hyphen(read: Read) -> None:
    page = [samples.Words(50, 700, "twoXwords"), samples.Words(50, 688, "andXmore")]
    file = samples.placed_pdf([page], meanings={"X": "\x02", **{c: c for c in "twordsanem"}})
    assert read("a.pdf", file).text == "two words\nand more"


def test_signs_beside_right_to_left_words_stand_as_they_were_written(read: Read) -> None:
    seen = ".1984 הנש )חותפ("  # from left to right
    glyphs = dict(enumerate(seen, start=1))
    text = read("a.pdf", samples.pdf_with_glyphs(list(glyphs), glyphs)).text
    assert text == "(פתוח) שנה 1984."


@pytest.mark.parametrize(
    ("word", "written"),
    [
        (".1984", "1984."),
        ("?10:30", "10:30?"),
        ("3.5", "3.5"),
        (".NET", ".NET"),
        (")מילה(", "(מילה)"),
        (".[12]", ".]12["),
        ("(word)", "(word)"),
    ],
)
def test_a_word_of_a_right_to_left_line_is_put_as_it_was_written(word: str, written: str) -> None:
    assert as_written(word, turn_brackets=True) == written


@pytest.mark.parametrize(
    ("text", "is_turned"),
    [
        (")א(", True),
        ("(א)", False),
        ("(א) ב (ג)", False),
        (")א( ב )ג(", True),
        ("א) ב\n(ג", False),
        (")word( א", False),
    ],
)
def test_brackets_are_turned_where_more_pairs_are_right_when_turned(text: str, *, is_turned: bool) -> None:
    assert has_turned_brackets(text) is is_turned


@pytest.mark.parametrize(
    ("line", "expected"), [("words and ב", False), ("ב א and", False), ("בית א and", True), ("12", False)]
)
def test_a_line_reads_right_to_left_where_most_letters_do(line: str, *, expected: bool) -> None:
    assert reads_right_to_left(line) is expected


def test_pages_without_text_are_counted(read: Read) -> None:
    document = read("a.pdf", samples.pdf([["words"], [], []], pictures=True))
    assert document.text == "words"
    assert (document.num_pages, document.num_textless_pages) == (3, 2)


def test_a_page_that_is_damaged_does_not_keep_the_others_from_being_read(read: Read) -> None:
    document = read("a.pdf", samples.pdf([["words"]], bad_pages=1))
    assert document.text == "words"
    assert document.num_textless_pages == document.num_pages - 1


def test_a_scan_is_refused_with_its_pages_and_what_to_do(refusal: Refusal) -> None:
    message = refusal("scan.pdf", samples.pdf([[], [], []], pictures=True))
    assert "3 pages, all of them pictures" in message
    assert "OCR" in message
    assert "1 page, a picture" in refusal("scan.pdf", samples.pdf([[]], pictures=True))


def test_an_empty_pdf_is_not_called_a_scan(refusal: Refusal) -> None:
    message = refusal("blank.pdf", samples.pdf([[], []]))
    assert "holds no text" in message
    assert "picture" not in message


def test_a_password_is_named(refusal: Refusal) -> None:
    assert "protected by a password" in refusal("secret.pdf", samples.encrypted_pdf())


def test_unknown_protection_is_named(refusal: Refusal) -> None:
    file = samples.pdf([["secret"]], trailer="/ID [<00> <00>] /Encrypt << /Filter /Other /V 1 >>")
    assert "protected" in refusal("secret.pdf", file)


@pytest.mark.parametrize("keep", [9, 60, 200])
def test_a_damaged_pdf_is_named(refusal: Refusal, keep: int) -> None:
    assert "the PDF file seems to be damaged" in refusal("a.pdf", samples.pdf([["x"]])[:keep])


def test_a_pdf_without_pages_is_damaged(refusal: Refusal) -> None:
    assert "damaged" in refusal("a.pdf", samples.pdf([]))


def test_more_text_than_the_limit_is_refused(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.documents.pdf.reader.MAX_TEXT_CHARS", 10)
    with pytest.raises(DocumentError, match="more than 50,000,000 characters"):
        read("a.pdf", samples.pdf([["twelve chars"]]))
