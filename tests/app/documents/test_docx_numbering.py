from __future__ import annotations

import pytest
from lxml import etree

from app.documents.docx_numbering import Numbering
from tests.app.documents import samples
from tests.app.documents.conftest import Read


def level(index: int, style: str, text: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{index}"><w:start w:val="{start}"/><w:numFmt w:val="{style}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(
    levels: str, lists: str = '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
) -> Numbering:
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return Numbering(
        etree.fromstring(
            f'<w:numbering xmlns:w="{namespace}"><w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
            f"{lists}</w:numbering>"
        )
    )


def test_a_level_counts_within_the_level_above() -> None:
    outline = numbering(
        level(0, "decimal", "%1.") + level(1, "decimal", "%1.%2") + level(2, "lowerLetter", "(%3)")
    )
    asked = [0, 1, 1, 2, 2, 0, 1, 2]
    assert [outline.label("1", index) for index in asked] == [
        "1.",
        "1.1",
        "1.2",
        "(a)",
        "(b)",
        "2.",
        "2.1",
        "(a)",
    ]


@pytest.mark.parametrize(
    ("style", "start", "labels"),
    [
        ("lowerLetter", 26, ["z", "aa"]),
        ("upperLetter", 1, ["A", "B"]),
        ("lowerRoman", 3, ["iii", "iv"]),
        ("upperRoman", 1998, ["MCMXCVIII", "MCMXCIX"]),
        ("decimalZero", 9, ["09", "10"]),
        ("ordinal", 1, ["1", "2"]),
        ("decimal", 0, ["0", "1"]),
    ],
)
def test_numbers_are_written_in_the_style_of_the_level(style: str, start: int, labels: list[str]) -> None:
    counted = numbering(level(0, style, "%1", start))
    assert [counted.label("1", 0) for _ in labels] == labels


def test_a_list_can_start_anew() -> None:
    second = (
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    )
    counted = numbering(level(0, "decimal", "%1."), second)
    assert [counted.label(name, 0) for name in "11221"] == ["1.", "2.", "1.", "2.", "3."]


def test_bullets_and_unknown_lists() -> None:
    counted = numbering(level(0, "bullet", ""))
    assert counted.label("1", 0) == "-"
    assert counted.label("9", 0) is None
    assert counted.label("1", 99) is None
    assert Numbering(None).label("1", 0) is None


def test_numbered_headings_show_their_numbers(read: Read) -> None:
    styles = (
        '<w:style w:styleId="H1"><w:name w:val="heading 1"/>'
        '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    lists = (
        f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1")}{level(1, "decimal", "%1.%2")}'
        '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    paragraph = '<w:p><w:pPr><w:pStyle w:val="{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'.format
    body = paragraph("H1", "Scope") + paragraph("H2", "Terms") + paragraph("H2", "Payment")
    document = read("a.docx", samples.docx(body, styles=styles, numbering=lists))
    assert document.text == "# 1 Scope\n\n## 1.1 Terms\n\n## 1.2 Payment"
