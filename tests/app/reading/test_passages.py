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


def test_documents_share_the_room_and_one_without_a_passage_takes_none() -> None:
    fact = Document("Seals", "", "text", FACT * 3)
    others = [Document(f"File {number}", "", "text", TEXT[:2000]) for number in range(20)]
    documents, cancel = [*others, fact], CancelToken()
    asked = ("Who has the spare seal?", 5, 600, len, cancel)
    finder = PassageFinder()
    found = finder.segments(documents, *asked)
    assert [bool(each) for each in found] == [False] * 20 + [True]
    texts = finder.texts(documents, found, *asked)
    assert len(texts[-1]) <= 600 and "[5] " in texts[-1] and FACT.strip() in texts[-1]


def test_numbers_go_on_from_document_to_document_and_the_best_sentence_names_its_own() -> None:
    documents = [
        Document("Docks", "", "text", FACT),
        Document("Care", "", "text", "The spare key of the dry dock is lost."),
    ]
    asked = ("Who has the spare seal of the dry dock?", 3, 2000, len, CancelToken())
    finder = PassageFinder()
    first, second = finder.texts(documents, finder.segments(documents, *asked), *asked)
    assert "[3] " in first and "[4] " in second
    assert "says:" not in first
    assert second.endswith(f"The document “Docks” says: “{FACT.strip()}”")
