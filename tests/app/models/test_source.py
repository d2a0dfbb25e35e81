from __future__ import annotations

import pytest

from app.models.source import HubSource
from engine.errors import ModelError


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("org/name", HubSource("org/name")),
        ("  org/name-4bit.v1 ", HubSource("org/name-4bit.v1")),
        ("org/name@v1.0", HubSource("org/name", "v1.0")),
        ("org/name/file.gguf", HubSource("org/name", None, "file.gguf")),
        ("org/name@main/sub/file.Q4_0.gguf", HubSource("org/name", "main", "sub/file.Q4_0.gguf")),
    ],
)
def test_names_are_read_and_printed_back(text: str, source: HubSource) -> None:
    assert HubSource.parse(text) == source
    assert HubSource.parse(source.id) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "/name",
        "org/",
        "org/na me",
        "org//name",
        "org/a--b",
        "../etc",
        "org/..",
        "org/name/../x.gguf",
        "https://huggingface.co/org/name",
        "org/name/file.bin",
        "org/name@",
        "org/name@refs/pr/1",
        "org/.hidden",
    ],
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ModelError, match=r"is no model name.*mlx-community/Qwen3-4B-4bit"):
        HubSource.parse(text)


@pytest.mark.parametrize("text", ["org/name", "org/name@v1"])
def test_a_folder_name_leads_back_to_its_repository(text: str) -> None:
    source = HubSource.parse(text)
    assert "/" not in source.folder_name
    assert HubSource.from_folder_name(source.folder_name) == source


def test_a_folder_of_the_user_is_no_repository() -> None:
    assert HubSource.from_folder_name("my model") is None
    assert HubSource.from_folder_name("model") is None
    assert HubSource.from_folder_name("a--b--c") is None
