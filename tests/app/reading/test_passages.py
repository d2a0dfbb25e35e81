from __future__ import annotations

import pytest

from app.documents.document import Document
from app.reading.passages import PassageFinder
from engine.bench.prose import TEXT
from engine.cancel import CancelToken

FACT = "The spare seal of the dry dock is in the care of Agnes Vandermeer. "
TITLE = "Who has the keys, and who has to be asked before anything is taken away"


@pytest.mark.parametrize("room", range(560, 1400, 60))
def test_a_passage_that_fills_a_small_room_is_cut_and_not_lost_for_its_number_and_place(room: int) -> None:
    text = f"{TEXT[:3000]}\n\n# {TITLE}\n\n{FACT * 12}\n\n{TEXT[3000:6000]}"
    document, cancel = Document("Handbook", "", "markdown", text), CancelToken()
    finder = PassageFinder()
    question = "Who has the spare seal?"
    found = finder.segments([document], question, 1, room, len, cancel)[0]
    assert found and FACT.strip() in text[found[0].start : found[0].stop]
    written = finder.texts([document], [found], question, 1, room, len, cancel)[0]
    assert len(written) <= room
    assert written.endswith(f"“{FACT.strip()}”")  # next to the question, which comes behind it
