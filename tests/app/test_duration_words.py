"""Durations in words."""

from __future__ import annotations

import pytest

from app.duration_words import duration_words, short_duration


@pytest.mark.parametrize(
    ("seconds", "words", "short"),
    [
        (0.2, "less than a minute", "less than a second"),
        (7, "less than a minute", "about 7 s"),
        (43, "less than a minute", "about 40 s"),
        (60, "about 1 minute", "about 60 s"),
        (185, "about 3 minutes", "about 3 min"),
        (89 * 60, "about 89 minutes", "about 89 min"),
        (91 * 60, "about 2 hours", "about 2 h"),
        (200 * 3600, "about 200 hours", "about 200 h"),
    ],
)
def test_a_duration_is_said_as_exactly_as_it_can_be_known(seconds: float, words: str, short: str) -> None:
    assert duration_words(seconds) == words
    assert short_duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == short
