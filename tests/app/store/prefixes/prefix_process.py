"""A process that keeps conversations and deletes earlier ones until it is killed; prints what it does.

Run as `python -m tests.app.store.prefixes.prefix_process PATH FIRST_ID`.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from app.store.prefixes.service import PrefixService
from tests.app.store.prefixes.stored_texts import blob_of, page_of, sequence_of

FLUSH_S = 60.0
PAGES = 4


def names_of(conversation_id: int) -> tuple[str, ...]:
    """The pages of a conversation; ten in a row share their beginning, with others 500 further on."""
    return f"beginning {conversation_id // 10 % 50}", *(
        f"{conversation_id} {number}" for number in range(PAGES)
    )


def run(service: PrefixService, first_id: int) -> None:
    for conversation_id in itertools.count(first_id):
        names = names_of(conversation_id)
        for parent, name in zip(("", *names), names, strict=False):
            while not service.put_page(page_of(name, conversation_id, parent)):
                service.wait_for_room(FLUSH_S)
        manifest = blob_of(f"manifest {conversation_id}", 5000)
        service.put_sequence(sequence_of(conversation_id, *names, manifest=manifest))
        print("put", conversation_id, flush=True)
        if conversation_id % 3 == 2:
            service.flush(FLUSH_S)
            print("kept", conversation_id, flush=True)
        if conversation_id % 4 == 3:
            print("deleting", conversation_id - 1, flush=True)
            service.delete(conversation_id - 1)


if __name__ == "__main__":
    path, first_id = sys.argv[1:]
    run(PrefixService(Path(path)), int(first_id))
