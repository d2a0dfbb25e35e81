"""The words of texts and questions as they are looked up: their form, and which of them mean something."""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_HAN, _HIRAGANA, _KATAKANA = "\u3400-\u9fff\uf900-\ufaff々", "\u3041-\u309f", "\u30a1-\u30ffー"
_HANGUL = "\u1100-\u11ff\uac00-\ud7af"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer."""
UNSPACED = _HAN + _HIRAGANA + _KATAKANA + _HANGUL + _SOUTH_EAST_ASIAN
"""Letters, for a character class, of scripts whose words are not told apart by spaces alone."""
_RUN = re.compile(f"[{UNSPACED}]+")
_ANY_UNSPACED = re.compile(f"[{UNSPACED}]")
_LETTER = rf"(?:[^\W_{UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])"
"""A letter or digit of the other scripts, or a mark on one; those of India write vowels as marks."""
_TERM = re.compile(
    f"[{_HAN}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_SOUTH_EAST_ASIAN}]+|[{_HIRAGANA}]+"
    rf"|{_LETTER}+(?:[-.,:/]{_LETTER}+)*"
)
_HIRAGANA_RUN = re.compile(f"[{_HIRAGANA}]+")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}([.,'’])\d{3}(?:\1\d{3})*(?!\1?\d)")
"""A number with its thousands apart, which may be written another way elsewhere."""
_BLANK_IN_NUMBER = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_ACCENTS = re.compile("[\u0300-\u036f]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_ARABIC_MARKS = re.compile("[\u064b-\u065f\u0670\u0640]")
_ARABIC_ARTICLE = re.compile(r"\b(?:[وفبك]?ال|لل)(?=\w{3})")
_KOREAN_ENDINGS = re.compile(
    r"(?<=..)(?:에서는|으로는|에서|으로|까지|부터|에게|은|는|이|가|을|를|의|에|로|와|과|도|만)$"
)
_SAMPLE_CHARACTERS = 20_000


def folded(text: str) -> str:
    """Return a text in which what is spelled alike is written alike: cases, widths, thousands apart."""
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFKC", _BLANK_IN_NUMBER.sub("'", text)).casefold()
    if _ARABIC.search(text):
        text = _ARABIC_ARTICLE.sub("", _ARABIC_MARKS.sub("", text))
    return _GROUPED.sub(lambda number: re.sub(r"\D", "", number.group()), text.replace("ё", "е"))


def without_accents(text: str) -> str:
    """Return a text without the accents on its letters, which are taken apart from them."""
    return text if text.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", text))


def in_pairs(text: str) -> str:
    """Return a text whose unspaced scripts are written in overlapping pairs of characters, with blanks."""
    return _RUN.sub(lambda run: f" {' '.join(pairs_of(run.group()))} {run.group()[-1]} ", text)


def pairs_of(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run; a single character alone."""
    return [first + second for first, second in pairwise(run)] or [run]


def is_unspaced(text: str) -> bool:
    """Whether a text has letters of scripts whose words are not told apart by spaces."""
    return bool(_ANY_UNSPACED.search(text))


@dataclass(frozen=True)
class Vocabulary:
    """Words of a language that say nothing about what is asked for.

    Attributes:
        name: the language's code, empty for none.
        stop: words that mean nothing.
        whole: words that ask about a whole document, or name it.
        form: words that say what form an answer shall have.
        is_spaced: whether words are told apart by spaces; else the patterns match anywhere.
    """

    name: str
    stop: re.Pattern[str]
    whole: re.Pattern[str]
    form: re.Pattern[str]
    is_spaced: bool = True


def _pattern(words: str, is_spaced: bool) -> re.Pattern[str]:
    longest_first = sorted(folded(words).split(), key=len, reverse=True)
    listed = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in longest_first) or "(?!)"
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)" if is_spaced else listed)


@functools.cache
def vocabularies() -> dict[str, Vocabulary]:
    """Return what is known of each language, by its code."""
    file = importlib.resources.files("resources").joinpath("lookup/words.toml")
    rows = tomllib.loads(file.read_text("utf-8"))
    return {name: _vocabulary(name, row) for name, row in rows.items()}


def _vocabulary(name: str, row: Mapping[str, Any]) -> Vocabulary:
    is_spaced = row.get("is_spaced", True)
    stop, whole, form = (_pattern(row.get(kind, ""), is_spaced) for kind in ("stop", "whole", "form"))
    return Vocabulary(name, stop, whole, form, is_spaced)


def vocabulary_of(question: str, text: str = "") -> Vocabulary:
    """Return the vocabulary of the language of a question; where it alone does not tell, of a text as well.

    One without words where neither tells.
    """
    question = folded(question)
    for letters, name in ((_HIRAGANA + _KATAKANA, "ja"), (_HANGUL, "ko"), (_HAN, "zh")):
        if re.search(f"[{letters}]", question):
            return vocabularies()[name]
    spaced = [each for each in vocabularies().values() if each.is_spaced]
    hits = [len(each.stop.findall(question)) for each in spaced]
    best = [each for each, count in zip(spaced, hits, strict=True) if count == max(hits)]
    if len(best) > 1 and text:
        sample = folded(text[:_SAMPLE_CHARACTERS])
        best.sort(key=lambda each: len(each.stop.findall(sample)), reverse=True)
    return best[0] if max(hits) or text else _vocabulary("", {})


def terms_of(text: str) -> list[str]:
    """Return the words, numbers and runs of unspaced letters of a folded text, in order.

    Of Japanese, letters that mostly are endings and particles only where there are no others.
    """
    terms: Sequence[str] = _TERM.findall(text)
    telling = [term for term in terms if not is_hiragana(term)]
    return [_KOREAN_ENDINGS.sub("", term) for term in telling or terms]


def is_hiragana(term: str) -> bool:
    """Whether a term has only letters that in Japanese mostly are endings and particles."""
    return bool(_HIRAGANA_RUN.fullmatch(term))


def content_terms(question: str, vocabulary: Vocabulary) -> list[str]:
    """Return the terms of a question that mean something, each once, in order; they are folded."""
    telling = vocabulary.stop.sub(" ", folded(question))
    return list(dict.fromkeys(term for term in terms_of(telling) if term))
