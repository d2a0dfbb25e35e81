"""The formats that can be read, and their names in the file dialog."""

from __future__ import annotations

import enum


class Format(enum.Enum):
    """A format with a reader; the value is `Document.kind`."""

    PDF = "pdf"
    DOCX = "docx"
    EPUB = "epub"
    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    CODE = "code"


READABLE = "PDF, DOCX, EPUB, HTML, Markdown, text or code"
"""The formats, for the end of a sentence."""

_BY_FORMAT = {
    Format.PDF: "pdf",
    Format.DOCX: "docx docm dotx dotm",
    Format.EPUB: "epub",
    Format.HTML: "html htm xhtml xht",
    Format.MARKDOWN: "md markdown mdown mkd",
    Format.TEXT: "txt text log csv tsv rst adoc asciidoc org srt vtt eml",
    Format.CODE: (
        "py pyi ipynb js mjs cjs jsx ts tsx vue svelte java kt kts scala groovy gradle c h cc cpp cxx "
        "hh hpp hxx m mm cs fs vb go rs swift rb php pl pm lua r jl hs ml mli ex exs erl clj cljs "
        "lisp el scm dart zig nim pas asm s f90 f95 sql sh bash zsh fish ps1 bat cmd css scss sass "
        "less json jsonl json5 xml xsd xsl svg yaml yml toml ini cfg conf env properties cmake mk "
        "dockerfile tf proto graphql tex bib sty diff patch"
    ),
}

SUFFIXES: dict[str, Format] = {
    f".{suffix}": form for form, suffixes in _BY_FORMAT.items() for suffix in suffixes.split()
}
"""File name endings in lower case and what they stand for; a file's content overrules its name."""

_GROUPS = {
    "Documents": (Format.PDF, Format.DOCX, Format.EPUB, Format.HTML),
    "Markdown and text": (Format.MARKDOWN, Format.TEXT),
    "Code": (Format.CODE,),
}


def file_filter() -> str:
    """Return the filters of a Qt file dialog: everything readable first, any file last."""
    groups = {"Readable files": tuple(Format), **_GROUPS}
    filters = [f"{title} ({_patterns(formats)})" for title, formats in groups.items()]
    return ";;".join([*filters, "All files (*)"])


def _patterns(formats: tuple[Format, ...]) -> str:
    """Return `*.pdf *.docx ...` for `formats`."""
    return " ".join(f"*{suffix}" for suffix, form in SUFFIXES.items() if form in formats)
