from __future__ import annotations

import pytest

from engine.errors import OctavoError
from engine.wording import MOST_NBYTES, format_apart, format_parameters, parse_nbytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("16G", 16 * 10**9),
        ("1.5GB", 1_500_000_000),
        (" 800 m ", 800_000_000),
        ("16GiB", 16 * 2**30),
        ("2tib", 2 * 2**40),
        (".5k", 500),
        ("4096", 4096),
        ("1000T", MOST_NBYTES),
    ],
)
def test_sizes_are_powers_of_1000_and_with_an_i_of_1024(text: str, nbytes: int) -> None:
    assert parse_nbytes(text) == nbytes


@pytest.mark.parametrize(
    "text", ["", "G", "0", "0.4", "-1G", "16X", "1e9", "16 G B", "1..5G", "nan", "١٦G", "1001T", "9" * 5000]
)
def test_what_is_no_size_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(OctavoError, match=r"^“.{0,40}” is no size of memory; write it as 16G, 1.5GB, 800M"):
        parse_nbytes(text)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (2_000_000_000, 1_300_000_000, ("2.0 GB", "1.3 GB")),
        (1_310_000_000, 1_280_000_000, ("1.31 GB", "1.28 GB")),
        (1_300_400_000, 1_300_000_000, ("1.3004 GB", "1.3000 GB")),
        (450_200_000, 449_800_000, ("450.2 MB", "449.8 MB")),
        (999, 998, ("999 bytes", "998 bytes")),
        (7, 7, ("7 bytes", "7 bytes")),
    ],
)
def test_two_sizes_are_told_so_that_they_can_be_told_apart(
    one: int, other: int, words: tuple[str, str]
) -> None:
    assert format_apart(one, other) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(134_515_008, "135 M"), (5_500_000, "5.5 M"), (999_999_999, "1.0 B"), (6_738_415_616, "6.7 B")],
)
def test_parameters_are_told_as_people_say_them(count: int, words: str) -> None:
    assert format_parameters(count) == words
