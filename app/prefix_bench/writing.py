"""The speed of answers while pages always wait to be written, and without, by turns in one process."""

from __future__ import annotations

import dataclasses
import os
import time

from app.prefix_bench.chat import NEXT_QUESTION, BenchChat
from app.prefix_bench.order import Order
from app.store.prefixes.records import GB, PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.bench.prefix.figures import DecodeWhileWriting
from engine.errors import OctavoError
from engine.kv.lineage import KEY_NBYTES
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import NewPage, SaveMode

MOST_NBYTES = GB // 2
"""What the file that is written meanwhile takes; older pages make room."""
MOST_WRITTEN_NBYTES = 1000 * GB
FLUSH_S = 60.0


class BusyWriter:
    """A second prefix cache whose writer has pages waiting as long as `fill` is called often.

    It is filled up from the engine's thread between two tokens, which is more than ever happens there: what
    an answer costs with it is the most that saving can cost.
    """

    def __init__(self, order: Order, page: NewPage) -> None:
        settings = PrefixSettings(SaveMode.EVERYTHING, MOST_NBYTES, MOST_WRITTEN_NBYTES)
        self._prefixes = PrefixService(order.folder / "busy.db", settings)
        self._page = page

    def fill(self) -> None:
        """Put pages until there is no room."""
        while self._prefixes.put_page(dataclasses.replace(self._page, key=os.urandom(KEY_NBYTES))):
            pass

    def finish(self) -> None:
        """Wait until nothing is left to write."""
        self._prefixes.flush(FLUSH_S)

    @property
    def num_written(self) -> int:
        """Pages that were written."""
        return self._prefixes.figures().saved

    def close(self) -> None:
        """End it."""
        self._prefixes.close()


def decode_while_writing(chat: BenchChat, order: Order) -> DecodeWhileWriting:
    """Answer by turns with nothing to write and with a busy writer.

    Raises:
        OctavoError: no page of the conversation is stored.
    """
    page = _stored_page(chat, order)
    chat.go_on(NEXT_QUESTION, 2)  # has it in memory
    idle: list[float] = []
    writing: list[float] = []
    num_written, seconds = 0, 0.0
    writer = BusyWriter(order, page)
    try:
        for _ in range(order.runs):
            idle.append(chat.go_on(NEXT_QUESTION, order.answer_tokens).decode_tps)
            written, started_s = writer.num_written, time.perf_counter()
            writing.append(chat.go_on(NEXT_QUESTION, order.answer_tokens, writer.fill).decode_tps)
            seconds += time.perf_counter() - started_s
            num_written += writer.num_written - written
            writer.finish()
    finally:
        writer.close()
    return DecodeWhileWriting(tuple(idle), tuple(writing), num_written * len(page.blob), seconds)


def _stored_page(chat: BenchChat, order: Order) -> NewPage:
    """Return a page of the conversation as it is stored, to be written again under other keys."""
    digest = ModelIdentity(chat.prefixes, order.model).digest
    sequence = None if digest is None else chat.prefixes.find_sequence(order.conversation_id, digest)
    for key in () if sequence is None else sequence.keys:
        blob = chat.prefixes.read_page(key)
        if blob is not None:
            stored = chat.prefixes.find_pages([key])
            return NewPage(key, b"", digest or "", 0, stored[0].num_tokens, stored[0].bits, blob, 0)
    raise OctavoError("No page of the conversation is stored: read a longer text.")
