"""What the tests of all readers share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.documents.document import Document, DocumentError
from app.documents.reader import read_document

Read = Callable[..., Document]
Refusal = Callable[..., str]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a file with the given name and content."""

    def read_file(name: str, content: str | bytes, **options: Any) -> Document:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_document(path, **options)

    return read_file


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """Return the sentence with which a file is refused; it names the file."""

    def refuse(name: str, content: str | bytes, **options: Any) -> str:
        with pytest.raises(DocumentError) as caught:
            read(name, content, **options)
        message = str(caught.value)
        assert message.startswith(f"“{name}” ")
        assert message.endswith(".")
        return message

    return refuse
