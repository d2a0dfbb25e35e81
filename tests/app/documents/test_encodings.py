from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.document import DocumentError
from app.documents.encodings import ENCODINGS, Decoded, decode, encoding_label, is_binary

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
CHINESE = "我能吞下玻璃而不伤身体。人人生而自由,在尊严和权利上一律平等。" * 5
JAPANESE = "わたしはガラスを食べられます。それはわたしを傷つけません。" * 5
GERMAN = "Die größten Bäume wachsen über die Häuser hinaus. Fußgänger müssen länger warten. " * 5


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"plain", "utf-8"),
        ("größer".encode(), "utf-8"),
        (codecs.BOM_UTF8 + "größer".encode(), "utf-8"),
        (codecs.BOM_UTF16_LE + "größer".encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + "größer".encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + "größer".encode("utf-32-le"), "utf-32-le"),
    ],
)
def test_what_is_certain_is_no_guess(data: bytes, encoding: str) -> None:
    assert decode(data, "“a”") == Decoded("plain" if data == b"plain" else "größer", encoding, False)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "koi8-r"),
        (CHINESE, "gb18030"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (GERMAN, "utf-16-le"),
    ],
)
def test_old_encodings_are_guessed_and_said_to_be(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    decoded = decode(data, "“a”")
    assert decoded.text == text
    assert decoded.guessed
    assert decoded.encoding in ENCODINGS


def test_of_encodings_that_give_the_same_text_the_commonest_is_named() -> None:
    assert GERMAN.encode("cp1252") == GERMAN.encode("cp1250") == GERMAN.encode("iso-8859-15")
    assert decode(GERMAN.encode("cp1252"), "“a”") == Decoded(GERMAN, "windows-1252", True)


def test_a_broken_byte_does_not_turn_utf8_into_something_else() -> None:
    data = (RUSSIAN.encode() + b"\xff" + RUSSIAN.encode())[:-1]
    decoded = decode(data, "“a”")
    assert (decoded.encoding, decoded.guessed) == ("utf-8", True)
    assert decoded.text.startswith(RUSSIAN)


def test_text_that_fits_no_language_is_still_read() -> None:
    text = "Zażółć gęślą jaźń. Łódź jest piękna." * 8
    decoded = decode(text.encode("cp1250"), "“a”")
    assert decoded.guessed
    assert decoded.text.startswith("Za")
    assert decode(bytes(range(128, 256)) * 2, "“a”").guessed


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_offered_encoding_works_and_has_a_label(encoding: str) -> None:
    assert decode("plain".encode(encoding), "“a”", encoding=encoding) == Decoded("plain", encoding, False)
    assert encoding_label(encoding) != encoding


@pytest.mark.parametrize("encoding", ["klingon", "", "hex", "rot13", "a\0b", "x" * 1000])
def test_an_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(DocumentError, match=r"“a” cannot be read as .* no such text encoding"):
        decode(b"x", "“a”", encoding=encoding)


def test_an_encoding_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DocumentError, match="“a” is not in Japanese"):
        decode(b"\x81\xff\xff", "“a”", encoding="shift_jis")


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 10,
        b"\x00" * 50,
        b"\x7f\x01\x02\x03" * 9,
        bytes(range(0, 200, 2)) * 3,
        b"a\x00" * 9 + b"\x01" * 99,
    ],
)
def test_binary_data_is_told_from_text(data: bytes) -> None:
    assert is_binary(data)


@pytest.mark.parametrize(
    "data",
    [
        RUSSIAN.encode("koi8-r"),
        b"\x1b[31mred\x1b[0m log\r\n" * 5,
        b"A\bAn\bnn" * 5,
        b"log line\n" * 50 + b"\x00" * 5,
        "text".encode("utf-16-le") * 9,
        "text".encode("utf-16"),
    ],
)
def test_text_is_told_from_binary_data(data: bytes) -> None:
    assert not is_binary(data)


@given(st.text())
def test_utf8_is_never_taken_for_anything_else(text: str) -> None:
    assert decode(text.encode(), "“a”") == Decoded(text.removeprefix("\ufeff"), "utf-8", False)
