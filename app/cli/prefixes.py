"""`octavo prefixes`: what is kept on disk of what was read."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping

import click

from app.paths import AppPaths
from app.settings import load_prefix_settings
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.prefixes.records import PrefixEntry, PrefixFigures
from app.store.prefixes.service import PrefixService
from engine.errors import OctavoError
from engine.prefixes.records import SaveMode
from engine.wording import format_nbytes

CLEAR_S = 60.0
MODES = {
    SaveMode.NEVER: "Nothing is kept from now on.",
    SaveMode.DOCUMENTS: "System prompts and documents are kept, no word of a message.",
    SaveMode.EVERYTHING: "Everything that is read is kept.",
}
NO_CONVERSATION = "(no conversation: read by `octavo ask`)"


@click.command()
@click.option("--clear", is_flag=True, help="Delete all of it; it costs time later, no words.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def prefixes(clear: bool, as_json: bool) -> None:
    """Show the prefix cache: what was read once and is on disk, so that it need not be read again."""
    with _opened() as service:
        if clear:
            service.clear()
            if not service.flush(CLEAR_S):
                in_use = "The prefix cache could not be emptied: it is in use. Try again later."
                raise OctavoError(service.figures().problem or in_use)
        figures, entries = service.figures(), service.entries()
        mode = service.mode
    if as_json:
        click.echo(json.dumps(_fields(mode, figures, entries), indent=2))
        return
    click.echo(_head(mode, figures))
    if entries:
        click.echo(_table(entries, _titles(AppPaths.from_environment())))
    if figures.problem:
        click.echo(f"\n{figures.problem}")


@contextlib.contextmanager
def _opened() -> Iterator[PrefixService]:
    paths = AppPaths.from_environment()
    service = PrefixService(
        paths.prefixes_db, load_prefix_settings(paths.settings_file), lambda problem: None
    )
    try:
        yield service
    finally:
        service.close()


def _titles(paths: AppPaths) -> Mapping[int, str]:
    """Return the titles of the conversations, none where they cannot be read."""
    if not paths.conversations_db.exists():
        return {}
    try:
        with contextlib.closing(ConversationStore.open(paths.conversations_db)) as store:
            return {one.id: one.title for one in store.conversations()}
    except StoreError:
        return {}


def _head(mode: SaveMode, figures: PrefixFigures) -> str:
    pages = (
        f"{figures.num_pages:,} pages, {format_nbytes(figures.nbytes)}" if figures.num_pages else "no pages"
    )
    written = format_nbytes(figures.written_today_nbytes)
    most, most_written = map(format_nbytes, (figures.most_nbytes, figures.most_written_nbytes))
    return (
        f"On disk: {pages}, of at most {most}. Written today: {written} of at most {most_written}.\n"
        f"{MODES[mode]}"
    )


def _table(entries: tuple[PrefixEntry, ...], titles: Mapping[int, str]) -> str:
    lines = [f"\n{'tokens':>9}{'on disk':>10}{'shared':>10}  {'last used':<18}conversation"]
    for entry in entries:
        tokens = f"{entry.num_tokens:,}" if entry.num_tokens else "–"
        sizes = f"{format_nbytes(entry.nbytes):>10}{format_nbytes(entry.shared_nbytes):>10}"
        title = titles.get(entry.conversation_id, f"conversation {entry.conversation_id}")
        title = title if entry.conversation_id else NO_CONVERSATION
        pinned = " (pinned)" if entry.is_pinned else ""
        used = entry.last_used.astimezone().strftime("%Y-%m-%d %H:%M")
        lines.append(f"{tokens:>9}{sizes}  {used:<18}{title}{pinned}")
    return "\n".join(lines)


def _fields(mode: SaveMode, figures: PrefixFigures, entries: tuple[PrefixEntry, ...]) -> dict[str, object]:
    by_conversation = [
        dataclasses.asdict(entry) | {"last_used": entry.last_used.isoformat()} for entry in entries
    ]
    return dataclasses.asdict(figures) | {"mode": mode.value, "entries": by_conversation}
