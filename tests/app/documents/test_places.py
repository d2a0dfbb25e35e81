from __future__ import annotations

import pytest

from app.documents.places import Place, Places, page_ranges

TEXT = """Before
# The *first* [one](https://a.test)
words
```
# in code
```
### 1.1 Below #
more
"""


def titles(text: str, kind: str = "markdown") -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in Places.of(text, kind).headings]


def test_headings_are_those_of_markdown_without_its_signs() -> None:
    places = Places.of(TEXT, "markdown")
    assert titles(TEXT) == [(1, "The first one"), (3, "1.1 Below")]
    assert [TEXT[heading.offset :].split("\n")[0][:5] for heading in places.headings] == ["# The", "### 1"]


def test_lines_that_are_underlined_are_headings_of_text_and_markdown_alone() -> None:
    text = "Owls\n====\nwords\n\nBirds of prey\n---\n\n---\nx | y\n--- | ---"
    assert titles(text) == titles(text, "text") == [(1, "Owls"), (2, "Birds of prey")]
    assert titles(text, "pdf") == []


def test_code_has_no_headings() -> None:
    assert titles("# a comment\nprint()", "code") == []


def test_a_heading_at_the_very_beginning_is_found() -> None:
    assert Places.of("# A\nx", "pdf").headings[0].offset == 0
    assert Places.of("\n# A\nx", "text").headings[0].offset == 1


def test_a_place_is_the_page_and_the_nearest_heading_above() -> None:
    text = "aaa\n# One\nbbb\n# Two\nccc"
    places = Places.of(text, "pdf", (0, 10, 10))
    assert places.at(0) == Place(1, "")
    assert places.at(text.index("One")) == Place(1, "One")
    assert places.at(10) == Place(3, "One")
    assert places.at(len(text)).words == "p. 3, Two"
    assert places.at(len(text)).sentence_words == "page 3, Two"
    assert (places.num_pages, places.textless_pages) == (3, (2,))


def test_a_document_without_pages_has_places_by_heading_alone() -> None:
    places = Places.of("# One\nx", "html")
    assert places.at(6) == Place(None, "One")
    assert places.at(6).words == "One"
    assert Places.of("x", "text").at(0).words == ""
    assert places.textless_pages == ()


def test_a_long_heading_is_shortened() -> None:
    assert titles(f"# {'word ' * 40}")[0][1].endswith("word…")
    assert len(titles(f"# {'word ' * 40}")[0][1]) <= 80


@pytest.mark.parametrize(
    ("pages", "words"), [((), ""), ((4,), "4"), ((3, 7, 8, 9), "3, 7–9"), ((1, 2, 5), "1–2, 5")]
)
def test_pages_are_named_in_few_words(pages: tuple[int, ...], words: str) -> None:
    assert page_ranges(pages) == words
