"""Which of two precisions of the same page stays, where conversations differ in what they want."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.recovery import open_prefixes
from tests.app.store.prefixes.stored_texts import page_of


@pytest.fixture
def database(tmp_path: Path) -> Iterator[PrefixDatabase]:
    database = open_prefixes(tmp_path / "prefixes.db").database
    yield database
    database.close()


def bits_of(database: PrefixDatabase, name: str) -> float:
    key = page_of(name).key
    return database.stored_bits([key])[key]


@pytest.mark.parametrize(
    ("former", "latter", "stays"),
    [
        pytest.param((1, 8.0), (1, 4.0), 4.0, id="a conversation lowers its own"),
        pytest.param((1, 8.0), (2, 4.0), 8.0, id="another would lower it"),
        pytest.param((0, 8.0), (2, 4.0), 8.0, id="the terminal has read it"),
        pytest.param((0, 8.0), (0, 4.0), 8.0, id="the terminal reads it once more, with fewer bits"),
        pytest.param((1, 4.0), (2, 8.0), 8.0, id="another has it more exactly"),
    ],
)
def test_a_page_stays_as_exact_as_the_conversation_that_has_it_most_exactly(
    database: PrefixDatabase, former: tuple[int, float], latter: tuple[int, float], stays: float
) -> None:
    for conversation_id, bits in (former, latter):
        database.put_page(replace(page_of("a", conversation_id), bits=bits))
    assert bits_of(database, "a") == stays


def test_a_page_that_stays_as_it_is_belongs_to_both(database: PrefixDatabase) -> None:
    """The second may lower it once the first is gone, which needs a note of whose it is."""
    database.put_page(replace(page_of("a", 1), bits=8.0))
    assert database.put_page(replace(page_of("a", 2), bits=4.0)) == 0
    assert database.put_page(replace(page_of("a", 1), bits=4.0)) == 0
    assert bits_of(database, "a") == 8.0
