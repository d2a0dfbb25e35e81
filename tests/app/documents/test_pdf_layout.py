from __future__ import annotations

import pytest

from app.documents.places import Places
from tests.app.documents import samples
from tests.app.documents.conftest import Read
from tests.app.documents.samples import Words, placed_pdf

PROSE = [f"line {number} of a column that is filled with words" for number in range(8)]


def lines(texts: list[str], x: float = 50, y: float = 700, **style: object) -> list[Words]:
    """Return lines below each other."""
    return [Words(x, y - 12 * index, text, **style) for index, text in enumerate(texts)]  # type: ignore[arg-type]


def test_columns_are_read_one_after_the_other_where_the_file_goes_to_and_fro(read: Read) -> None:
    left = lines([f"left {text}" for text in PROSE], x=50)
    right = lines([f"right {text}" for text in PROSE], x=320)
    page = [Words(50, 740, "A title over both of the columns, from one side to the other of the page")]
    page += [words for pair in zip(left, right, strict=True) for words in pair]
    page += [Words(50, 560, "a line under both of the columns, from one side to the other of the page")]
    text = read("a.pdf", placed_pdf([page])).text
    expected = [page[0].text, *(words.text for words in (*left, *right)), page[-1].text]
    assert text.replace("\n\n", "\n").split("\n") == expected


def test_the_order_of_the_file_stays_where_it_goes_down_the_columns(read: Read) -> None:
    right = lines([f"right {text}" for text in PROSE], x=320)
    left = lines([f"left {text}" for text in PROSE], x=50)
    text = read("a.pdf", placed_pdf([[*right, *left]])).text
    assert text.split("\n") == [words.text for words in (*right, *left)]


def test_rows_of_short_cells_are_a_table_and_not_columns(read: Read) -> None:
    rows = [
        ("Name", "Year", "Height"),
        ("Oak", "1950", "21 m"),
        ("Elm", "1961", "18 m"),
        ("Ash | beech", "1970", "9 m"),
    ]
    page = [Words(50, 740, "Trees of the park")]
    page += [
        Words(50 + 120 * column, 700 - 14 * row, cell)
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
    ]
    page += [Words(50, 620, "All of them were measured in spring.")]
    assert read("a.pdf", placed_pdf([page])).text == (
        "Trees of the park\n\n"
        "| Name | Year | Height |\n| --- | --- | --- |\n| Oak | 1950 | 21 m |\n| Elm | 1961 | 18 m |\n"
        "| Ash \\| beech | 1970 | 9 m |\n\n"
        "All of them were measured in spring."
    )


def test_a_numbered_list_and_code_with_comments_are_no_tables(read: Read) -> None:
    listed = [
        [Words(50, 700 - 12 * row, f"{row + 1}."), Words(80, 700 - 12 * row, f"step {row}")]
        for row in range(4)
    ]
    code = [
        [Words(50, 500 - 12 * row, f"x{row} := {row};"), Words(200, 500 - 12 * row, "// as said")]
        for row in range(4)
    ]
    text = read("a.pdf", placed_pdf([[words for row in (*listed, *code) for words in row]])).text
    assert "1. step 0\n2. step 1" in text
    assert "x0 := 0; // as said" in text
    assert "|" not in text


def test_larger_type_is_a_heading_of_a_level_by_its_size(read: Read) -> None:
    page = [
        Words(50, 780, "The Forest", 24),
        Words(50, 740, "1 Trees of the north", 16),
        *lines(PROSE, y=720),
        Words(50, 600, "1.1 Oaks and their", 13, "bold"),
        Words(50, 585, "relatives", 13, "bold"),
        *lines(PROSE, y=560),
    ]
    text = read("a.pdf", placed_pdf([page])).text
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        "# The Forest",
        "## 1 Trees of the north",
        "### 1.1 Oaks and their relatives",
    ]


def test_a_bold_line_that_stands_apart_is_a_heading_and_a_bold_word_is_none(read: Read) -> None:
    page = [
        *lines(PROSE, y=740),
        Words(50, 620, "Results", 10, "bold"),
        Words(50, 604, "Note", 10, "bold"),
        Words(80, 604, "that this line goes on in plain type"),
        *lines(PROSE, y=592),
    ]
    text = read("a.pdf", placed_pdf([page])).text
    assert [line for line in text.split("\n") if line.startswith("#")] == ["# Results"]
    assert "Note that this line goes on" in text


def test_the_outline_says_which_lines_are_headings_and_of_what_level(read: Read) -> None:
    first = [Words(50, 740, "2.1 Of owls"), *lines(PROSE, y=716), Words(50, 560, "A large remark", 30)]
    second = [Words(50, 740, "Part Two"), *lines(PROSE, y=716)]
    outline = [("Part One", 1, 0), ("Of owls", 2, 0), ("Part Two", 1, 1)]
    text = read("a.pdf", placed_pdf([first, second], outline=outline)).text
    assert [line for line in text.split("\n") if line.startswith("#")] == ["## 2.1 Of owls", "# Part Two"]


def test_what_only_looks_like_a_heading_of_markdown_is_kept_apart_from_them(read: Read) -> None:
    document = read("a.pdf", placed_pdf([lines(["# a comment in code", "``` and a fence", *PROSE])]))
    assert "\\# a comment in code" in document.text
    assert Places.of(document.text, document.kind).headings == ()


def test_headers_and_footers_that_repeat_are_dropped(read: Read) -> None:
    pages = [
        [
            Words(50, 800, "A handbook of owls"),
            Words(500, 800, f"Page {number}"),
            *lines([f"{text} of page {number}" for text in PROSE]),
            Words(290, 40, str(number)),
        ]
        for number in range(1, 5)
    ]
    text = read("a.pdf", placed_pdf(pages)).text
    assert text.count("A handbook of owls") == 1  # nothing else says it
    assert text.split("\n")[-1] == "line 7 of a column that is filled with words of page 4"
    assert "\n2\n" not in text


def test_the_running_heads_of_chapters_are_dropped_also_where_a_chapter_is_short(read: Read) -> None:
    chapters = ["Owls", "Owls", "Owls", "Bats", "Bats"]
    pages = [
        [Words(50, 800, f"{number} Of {chapter}"), *lines([f"{chapter} {text} {number}" for text in PROSE])]
        for number, chapter in enumerate(chapters, start=1)
    ]
    text = read("a.pdf", placed_pdf(pages)).text
    assert "Of" not in text
    assert text.count("Bats line") == 16


@pytest.mark.parametrize("numbers", [(1, 2, 5, 9, 14), (7, 12, 21, 30, 31)])
def test_the_first_lines_of_pages_stay_where_their_numbers_are_no_pages(
    read: Read, numbers: tuple[int, ...]
) -> None:
    pages = [
        [Words(50, 800, f"Example {number}"), *lines([f"{text} {number}" for text in PROSE])]
        for number in numbers
    ]
    text = read("a.pdf", placed_pdf(pages)).text
    assert [line for line in text.split("\n") if "Example" in line] == [f"Example {each}" for each in numbers]


def test_headings_that_begin_each_page_stay(read: Read) -> None:
    pages = [
        [Words(50, 800, f"Chapter {number}", 16), *lines([f"{text} {number}" for text in PROSE])]
        for number in range(1, 6)
    ]
    text = read("a.pdf", placed_pdf(pages)).text
    assert [line for line in text.split("\n") if line[:1] == "#"] == [
        f"# Chapter {each}" for each in range(1, 6)
    ]


def test_a_chinese_header_that_nothing_else_says_stays_once(read: Read) -> None:
    pages = [[Words(50, 800, "ABCD"), *lines([f"{text} {number}" for text in PROSE])] for number in range(4)]
    text = read("a.pdf", placed_pdf(pages, meanings=dict(zip("ABCD", "操作手册", strict=True)))).text
    assert text.count("操作手册") == 1


def test_lines_that_repeat_in_the_middle_of_pages_stay(read: Read) -> None:
    pages = [
        lines([f"first {letter}", *PROSE[:4], "the same words", *PROSE[4:], f"last {letter}"])
        for letter in "abcd"
    ]
    assert read("a.pdf", placed_pdf(pages)).text.count("the same words") == 4


def test_pages_that_hold_nothing_else_keep_what_repeats(read: Read) -> None:
    assert read("a.pdf", samples.pdf([["words"]] * 4)).text == "words\n\nwords\n\nwords\n\nwords"


def test_each_page_begins_where_it_is_said_to_begin(read: Read) -> None:
    document = read("a.pdf", samples.pdf([[], ["first page."], [], ["Second"], []], pictures=True))
    assert document.text == "first page.\n\nSecond"
    assert document.page_starts == (0, 0, 13, 13, 19)
    assert Places.of(document.text, document.kind, document.page_starts).textless_pages == (1, 3, 5)


def test_a_sentence_that_goes_on_on_the_next_page_is_not_parted(read: Read) -> None:
    document = read("a.pdf", samples.pdf([["The owl that we saw in the wood"], ["was a young one."]]))
    assert document.text == "The owl that we saw in the wood\nwas a young one."
    assert document.text[document.page_starts[1] :] == "was a young one."


def test_a_word_that_goes_on_on_the_next_page_is_whole(read: Read) -> None:
    pages = [
        ["The owl that we saw was hid-"],
        ["den in the wood. It was well-"],
        ["known, a well-known owl"],
        ["- 4 -"],
    ]
    document = read("a.pdf", samples.pdf(pages))
    assert document.text == (
        "The owl that we saw was hidden in the wood. It was well-known, a well-known owl\n\n- 4 -"
    )
    starts = [document.text[start : start + 5] for start in document.page_starts]
    assert starts == ["The o", "den i", "known", "- 4 -"]


def test_paragraphs_are_parted_where_the_page_parts_them(read: Read) -> None:
    page = [
        *lines(["One line of text that is as long as others are.", "It ends here."], y=700),
        *lines(["Another follows that is as long as others are, so", "that it has two lines."], y=676),
        *lines(["And one with more room above, which goes on", "and does not end"], y=634),
        *lines(["but more room is below it."], y=598),
    ]
    assert read("a.pdf", placed_pdf([page])).text == (
        "One line of text that is as long as others are.\nIt ends here.\n\n"
        "Another follows that is as long as others are, so\nthat it has two lines.\n\n"
        "And one with more room above, which goes on\nand does not end\n\n"
        "but more room is below it."
    )


def test_links_keep_where_they_lead(read: Read) -> None:
    page = [Words(50, 700, "See the manual for more, or https://octavo.test/a")]
    links = {"https://octavo.test/m_(1)": (67, 695, 123, 712), "https://octavo.test/a": (190, 695, 300, 712)}
    assert read("a.pdf", placed_pdf([page], links=links)).text == (
        "See [the manual](https://octavo.test/m_%281%29) for more, or https://octavo.test/a"
    )


def test_small_raised_figures_are_marks_of_notes(read: Read) -> None:
    page = [
        Words(50, 700, "an owl"),
        Words(79.5, 704, "3", 6),
        Words(90, 700, "in 1999 and 10"),
        Words(156, 704, "6", 6),
        Words(50, 60, "3", 6),
        Words(54, 57, "See above.", 8),
    ]
    text = read("a.pdf", placed_pdf([page])).text
    assert text.startswith("an owl³ in 1999 and 10⁶")
    assert text.endswith("³ See above.")


def test_bullets_become_those_of_markdown(read: Read) -> None:
    assert read("a.pdf", placed_pdf([lines(["• one", "• two"])])).text == "- one\n- two"


@pytest.mark.parametrize("turn", ["0 1 -1 0 595 0", "-1 0 0 -1 595 842", "0 -1 1 0 0 842"])
def test_a_page_on_its_side_is_read_as_if_it_were_turned(read: Read, turn: str) -> None:
    right = lines([f"right {text}" for text in PROSE], x=320, y=500)
    left = lines([f"left {text}" for text in PROSE], x=50, y=500)
    page = [words for pair in zip(left, right, strict=True) for words in pair]
    text = read("a.pdf", placed_pdf([page], turn=turn)).text
    assert text.replace("\n\n", "\n").split("\n") == [words.text for words in (*left, *right)]
