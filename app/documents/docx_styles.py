"""What the styles and properties of a DOCX say about its paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from app.documents.docx_numbering import WORD


@dataclass(frozen=True)
class Style:
    """What a paragraph style says about its paragraphs; None where it leaves it to `parent`."""

    parent: str | None
    heading: int | None
    list_id: str | None
    list_level: int | None


def read_styles(root: Any) -> dict[str, Style]:
    """Return the paragraph styles by their id."""
    if root is None:
        return {}
    styles = {}
    for element in root.iter(f"{WORD}style"):
        name = element.find(f"{WORD}name")
        parent = element.find(f"{WORD}basedOn")
        style = paragraph_style(
            element.find(f"{WORD}pPr"), "" if name is None else name.get(f"{WORD}val", "")
        )
        parent_id = None if parent is None else parent.get(f"{WORD}val")
        styles[element.get(f"{WORD}styleId", "")] = Style(
            parent_id, style.heading, style.list_id, style.list_level
        )
    return styles


def paragraph_style(properties: Any, name: str) -> Style:
    """Return what paragraph properties say; `name` is that of the style, which Word keeps in English."""
    heading = None
    if match := re.fullmatch(r"heading (\d)", name, re.IGNORECASE):
        heading = int(match[1])
    elif name.lower() == "title":
        heading = 1
    if properties is None:
        return Style(None, heading, None, None)
    found = {
        key: None if (element := properties.find(path)) is None else element.get(f"{WORD}val")
        for key, path in {
            "parent": f"{WORD}pStyle",
            "outline": f"{WORD}outlineLvl",
            "list": f"{WORD}numPr/{WORD}numId",
            "level": f"{WORD}numPr/{WORD}ilvl",
        }.items()
    }
    outline = as_number(found["outline"])
    if heading is None and outline is not None:
        heading = outline + 1 if outline < 6 else 0  # 0: body text, whatever the style above says
    return Style(found["parent"], heading, found["list"], as_number(found["level"]))


def as_number(text: str | None) -> int | None:
    """Return an attribute as a number, None when it is none."""
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None
