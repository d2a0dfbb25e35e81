"""What is told of a context and of its rows, in words."""

from __future__ import annotations

from app.documents.ways import DocumentWay
from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.ledger.records import Summary, SummarySource
from engine.wording import format_nbytes

KIND_WORDS = {
    EntryKind.SYSTEM: "System",
    EntryKind.DOCUMENT: "Documents",
    EntryKind.TURN: "Turns",
    EntryKind.SUMMARY: "Summaries",
}
"""The names of all rows of a kind together."""
_STATE_TIPS = {
    EntryState.IN_CONTEXT: "The model reads it.",
    EntryState.UNREAD: "The model reads it with the next message.",
    EntryState.SUMMARIZED: "The model reads the summary above in its place.",
    EntryState.LEFT_OUT: "The model does not read it. It stays in the chat.",
}
_WAYS = {DocumentWay.SEGMENTS: "in segments", DocumentWay.LOOK_UP: "looked up"}
_WAY_TIPS = {
    DocumentWay.SEGMENTS: "For the next question the model reads it in segments, and answers from its notes.",
    DocumentWay.LOOK_UP: "For each question the model reads only the passages that fit its words.",
}
_ON_DISK = "on disk"


def takes_text(report: LedgerReport) -> str:
    """Return what a context takes: `Takes 3,412 of 4,096 tokens, 31 MB`."""
    if report.limit_tokens is None:
        return "Without a model, what the context takes is not known."
    if report.tokens is None:
        return "The tokens are not counted yet."
    about = "about " if report.is_about else ""
    limit = f" of {report.limit_tokens:,}"
    nbytes = "" if report.nbytes is None else f", {_size(report.nbytes)}"
    return f"Takes {about}{_tokens(report.tokens, limit)}{nbytes}"


def beside_text(report: LedgerReport) -> str:
    """Return the room and the positions that are empty and the other versions, as far as there are any."""
    parts = []
    if report.unused_nbytes:
        parts.append(f"{_size(report.unused_nbytes)} unused room")
    if report.empty_positions:
        parts.append(_count(report.empty_positions, "empty position"))
    if report.versions:
        parts.append(f"{_count(report.versions, 'other version')}, {_size(report.versions_nbytes)}")
    return " · ".join(parts)


def beside_tip(report: LedgerReport) -> str:
    """Return what unused room, empty positions and other versions are."""
    lines = []
    if report.unused_nbytes:
        lines.append(
            f"{_size(report.unused_nbytes)} are room in pages that no text uses, as where it has left. Rows "
            "show what their own tokens take."
        )
    if report.empty_positions and report.next_position is not None and report.positions is not None:
        lines.append(
            f"{report.next_position:,} of the model's {report.positions:,} positions are used, "
            f"{report.empty_positions:,} of them by text that left, so that what follows it need not be read "
            "again. When they run out, the conversation is read again once."
        )
    if report.versions:
        lines.append("Versions that you edited or had answered again share what they have in common.")
    return "\n".join(lines)


def tokens_text(entry: LedgerEntry) -> str:
    """Return the tokens of a row as its number, `1,204` or `about 1,204`; nothing where that is unknown."""
    if entry.tokens is None:
        return ""
    return f"{'about ' if entry.is_about else ''}{entry.tokens:,}"


def state_text(entry: LedgerEntry) -> str:
    """Return whether the model reads a row, how it reads a document, and how what left comes back."""
    if entry.way in _WAYS:
        return _WAYS[entry.way]
    if entry.is_on_disk and entry.state is EntryState.UNREAD:
        return "comes back with the next message"
    return f"{entry.state.value}, {_ON_DISK}" if entry.is_on_disk else entry.state.value


def figures_text(entry: LedgerEntry) -> str:
    """Return the second line of a row: its state and its bytes."""
    nbytes = "" if entry.nbytes is None else f" · {format_nbytes(entry.nbytes)}"
    return f"{state_text(entry)}{nbytes}"


def title_text(entry: LedgerEntry) -> str:
    """Return the first line of a row."""
    if entry.kind is EntryKind.TURN:
        return f"{entry.number:,}. {entry.title}"
    return entry.title or entry.kind.value


def heat_text(entry: LedgerEntry) -> str:
    """Return how much attention a row gets, nothing where that is not known."""
    if entry.heat is None or entry.heat_rate is None:
        return ""
    share = "less than 0.1%" if entry.heat < 0.001 else f"{entry.heat:.1%}"
    return f"Gets {share} of the attention, {entry.heat_rate:.1f} times the average for its length."


def row_sentence(entry: LedgerEntry) -> str:
    """Return a row to be read aloud: `Turn 12, What is the budget?, 120 tokens, summarized`."""
    kind = f"Turn {entry.number:,}" if entry.kind is EntryKind.TURN else entry.kind.value
    about = "about " if entry.is_about else ""
    parts = [
        kind,
        entry.title if entry.title != kind else "",
        "" if entry.tokens is None else f"{about}{_tokens(entry.tokens)}",
        "" if entry.nbytes is None else format_nbytes(entry.nbytes),
        state_text(entry),
        "pinned" if entry.is_pinned else "",
    ]
    return ", ".join(part for part in parts if part)


def tip_text(entry: LedgerEntry) -> str:
    """Return all that is known of a row."""
    about = "about " if entry.is_about else ""
    nbytes = "" if entry.nbytes is None else f", {format_nbytes(entry.nbytes)}"
    lines = [
        title_text(entry),
        "" if entry.tokens is None else f"Takes {about}{_tokens(entry.tokens)}{nbytes}.",
        heat_text(entry),
        _STATE_TIPS[entry.state] if entry.way is None else _WAY_TIPS.get(entry.way, ""),
        "Its keys and values are on disk, so it comes back without being read." if entry.is_on_disk else "",
        "Pinned: it stays when room is made." if entry.is_pinned else "",
    ]
    return "\n".join(line for line in lines if line)


def author_text(summary: Summary) -> str:
    """Return who wrote a summary, and of how much."""
    of = f" It replaces about {_tokens(summary.source_tokens)}." if summary.source_tokens else ""
    if summary.source is SummarySource.MODEL:
        return f"Written by {summary.model or 'the model'}.{of}"
    return f"{summary.note or 'Sentences of the text itself.'}{of}"


def _tokens(count: int, of: str = "") -> str:
    return f"{count:,}{of} token{'' if count == 1 and not of else 's'}"


def _size(nbytes: int) -> str:
    """Return bytes for people, not to be broken between number and unit."""
    return format_nbytes(nbytes).replace(" ", "\N{NO-BREAK SPACE}")


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
