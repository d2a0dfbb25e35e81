"""The sentences of a text in any script, and the words that two texts may share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_ITEM = re.compile(r"\s*(?:[-*•·–—]|\d{1,3}[.)])\s")
"""Begins an item of a list, which may go on in the next line."""
_ALONE = re.compile(r"\s*(?:#{1,6}\s|\|)")
"""A heading or a row of a table."""
_BLOCK_START = re.compile(rf"\n(?=[ \t]*\n|{_ITEM.pattern}|{_ALONE.pattern})")
"""The end of a line behind which something else begins."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
"""Begins and ends lines of code."""
_END = re.compile(r"(?<![.!?…؟۔।])[.!?…؟۔।]++[\"'”’»)\]]*+(?=\s)|[。！？｡]++[”’」』）]*+")
_NOT_SPACE = re.compile(r"\S")
_ABBREVIATION = re.compile(
    r"(?:(?:^|\s)\d{1,2}|(?:^|\W)(?:[^\W\d]|Dr|Prof|Mr|Mrs|Ms|St|Nr|Fig|Sec|Eq|vs|cf|bzw|ca|usw|vgl|Abs"
    r"|Sr|Sra|e\.g|i\.e|z\. ?B|d\. ?h|u\. ?a|p\. ?ex))\.$"
)
"""A letter, a small number or a short form before a full stop: the sentence goes on."""
_UNSPACED = "\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of scripts that put no space between words."""
_WORD = re.compile(rf"\d[\d.,:/]*\d|[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]*|\d|[{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each with single spaces.

    A full stop within a number or behind an abbreviation ends none. Headings, rows of tables and items of
    lists are sentences; lines of a paragraph are joined before. Nothing but white space is left out.
    """
    return [sentence for block in _blocks(text) for sentence in _split(block)]


def whole_sentences(text: str) -> str:
    """Return the beginning of a text that ends with its last whole sentence, item of a list or paragraph.

    Empty where none is whole.
    """
    ended = f"{text}\n"
    ends = [match.end() for match in _END.finditer(ended) if _is_end(ended, match)]
    ends.extend(match.start() for match in _BLOCK_START.finditer(text))
    return text[: max(ends, default=0)].strip()


def words_of(text: str) -> list[str]:
    """Return words and numbers in lower case; two characters at a time where a script has no spaces."""
    words: list[str] = []
    for word in _WORD.findall(text):
        if _UNSPACED_RUN.fullmatch(word) and len(word) > 1:
            words.extend(word[at : at + 2] for at in range(len(word) - 1))
        else:
            words.append(word.casefold())
    return words


def _blocks(text: str) -> Iterator[str]:
    """Yield headings, items of lists, rows of tables, lines of code and paragraphs, each in one line."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_fence = bool(_FENCE.match(line))
        is_alone = is_code or is_fence or bool(_ALONE.match(line))
        if is_alone or not line.strip() or _ITEM.match(line) or _ends_block(lines):
            yield " ".join(lines)
            lines = []
        words = " ".join(line.split())
        if is_alone:
            yield words
        elif words:
            lines.append(words)
        is_code ^= is_fence
    yield " ".join(lines)


def _ends_block(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[-1].endswith((":", "："))


def _split(block: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(block):
        if _is_end(block, match):
            sentence = block[start : match.end()].strip()
            if sentence:
                yield sentence
            start = match.end()
    rest = block[start:].strip()
    if rest:
        yield rest


def _is_end(text: str, match: re.Match[str]) -> bool:
    """Whether a mark ends a sentence: not where small letters follow, nor behind an abbreviation."""
    following = _NOT_SPACE.search(text, match.end())
    if following and following.group().islower():
        return False
    before = text[max(0, match.start() - 12) : match.end()]
    return not (match.group() == "." and _ABBREVIATION.search(before))
