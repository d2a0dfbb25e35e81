from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from ui.markdown.blocks import Block, BlockKind, BlockSplitter
from ui.markdown.document import parse_markdown

PIECES = [
    "word",
    "two words",
    "- item",
    "* item",
    "1. first",
    "2) second",
    "10. tenth",
    "  continued",
    "   indented by three",
    "    code by indentation",
    "```python",
    "```",
    "~~~",
    "   ```bash",
    "   ```",
    "````",
    "> quote",
    ">",
    "# heading",
    "###### small",
    "#hashtag",
    "===",
    "---",
    "***",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "<div>",
    "$x_1$",
    "\tx",
    "",
    "   ",
    "`",
    "中文",
    "سطر",
    "🎉",
]
texts = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", "\n", "\n\n", " ", "\r\n", ""])), max_size=20
).map(lambda parts: "".join(piece + end for piece, end in parts))


def split(text: str) -> list[Block]:
    splitter = BlockSplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.finished


def kinds(text: str) -> list[BlockKind]:
    return [block.kind for block in split(text) if block.source.strip()]


@given(texts)
def test_blocks_together_are_the_text_at_every_prefix_and_finished_ones_never_change(text: str) -> None:
    splitter = BlockSplitter()
    before: list[Block] = []
    for end in range(1, len(text) + 1):
        splitter.feed(text[end - 1])
        opened = [splitter.open] if splitter.open is not None else []
        assert "".join(block.source for block in [*splitter.finished, *opened]) == text[:end]
        assert splitter.finished[: len(before)] == before
        before = list(splitter.finished)
    splitter.finish()
    assert "".join(block.source for block in splitter.finished) == text
    assert splitter.open is None


@given(texts, st.integers(1, 7))
def test_blocks_do_not_depend_on_how_the_text_arrives(text: str, size: int) -> None:
    splitter = BlockSplitter()
    for start in range(0, len(text), size):
        splitter.feed(text[start : start + size])
    splitter.finish()
    assert splitter.finished == split(text)


@given(texts)
def test_what_is_shown_of_open_code_only_grows_at_its_end(text: str) -> None:
    splitter = BlockSplitter()
    splitter.feed("```\n")
    shown = ""
    for character in text.replace("`", "").replace("~", ""):
        splitter.feed(character)
        assert splitter.open is not None
        assert splitter.open.code.startswith(shown)
        shown = splitter.open.code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n\nc", [BlockKind.PARAGRAPH, BlockKind.PARAGRAPH]),
        ("# a\nb", [BlockKind.HEADING, BlockKind.PARAGRAPH]),
        ("a\n===\nb", [BlockKind.HEADING, BlockKind.PARAGRAPH]),
        ("a\n# b", [BlockKind.PARAGRAPH, BlockKind.HEADING]),
        ("- a\n\n  b\n- c\n\nd", [BlockKind.LIST, BlockKind.PARAGRAPH]),
        ("- a\nlazy\n\nd", [BlockKind.LIST, BlockKind.PARAGRAPH]),
        ("a\n- b", [BlockKind.PARAGRAPH, BlockKind.LIST]),
        ("in\n1984. it", [BlockKind.PARAGRAPH]),
        ("> a\n> b\nlazy\n\nc", [BlockKind.QUOTE, BlockKind.PARAGRAPH]),
        ("|a|b|\n|-|-|\n|1|2|\n\nc", [BlockKind.TABLE, BlockKind.PARAGRAPH]),
        ("a\n\n---\n\nb", [BlockKind.PARAGRAPH, BlockKind.RULE, BlockKind.PARAGRAPH]),
        (
            "a\n```\n# no heading\n\n- no list\n```\nb",
            [BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.PARAGRAPH],
        ),
        ("````\n```\n````\nb", [BlockKind.CODE, BlockKind.PARAGRAPH]),
        ("```inline``` code", [BlockKind.PARAGRAPH]),
    ],
)
def test_kinds_of_blocks(text: str, expected: list[BlockKind]) -> None:
    assert kinds(text) == expected


def test_a_fence_in_a_list_is_a_block_of_its_own_and_the_list_goes_on() -> None:
    text = "1. Do:\n   ```sh\n   ls\n     -l\n   ```\n   then rest\n\n2. Next\n"
    list_start, code, rest, list_end = split(text)
    assert (code.kind, code.indent, code.language, code.code) == (BlockKind.CODE, 3, "sh", "ls\n  -l")
    assert (rest.kind, rest.indent, rest.markdown) == (BlockKind.PARAGRAPH, 3, "then rest\n\n")
    assert (list_start.kind, list_end.kind) == (BlockKind.LIST, BlockKind.LIST)
    assert list_end.markdown == "2. Next\n"


def test_a_closing_fence_that_is_being_written_is_not_shown_as_code() -> None:
    splitter = BlockSplitter()
    splitter.feed("```py\nx = 1\n``")
    assert splitter.open is not None
    assert splitter.open.code == "x = 1"


def test_the_language_is_the_first_word_of_the_fence() -> None:
    assert [split(f"```{info}\nx\n```\n")[0].language for info in ("", " python title=a", "{.rust}")] == [
        "",
        "python",
        "rust",
    ]


def test_blocks_read_one_by_one_say_the_same_as_the_whole_text_read_at_once(qtbot: QtBot) -> None:
    text = (
        "# Title\n\nA *paragraph*\nover two lines.\n- a\n- b\n  - c\n\n  more of b\n\n"
        "1. one\n2. two\n\n> quoted\n> still\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nSetext\n---\n\n***\nEnd\n"
    )
    whole = [line for line in parse_markdown(text).toPlainText().split("\n") if line.strip()]
    pieces = [
        line
        for block in split(text)
        for line in parse_markdown(block.markdown).toPlainText().split("\n")
        if line.strip()
    ]
    assert pieces == whole
