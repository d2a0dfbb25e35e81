from __future__ import annotations

from app.models.catalogue import catalogue
from app.models.source import STARTER_ID, HubSource


def test_every_entry_can_be_asked_for_by_its_id() -> None:
    first, *others = catalogue()
    assert first.id == STARTER_ID
    assert [HubSource.parse(entry.id).id for entry in others] == [entry.id for entry in others]
    assert len({entry.id for entry in catalogue()}) == len(catalogue())


def test_every_entry_says_what_a_choice_needs() -> None:
    for entry in catalogue():
        assert entry.nbytes > 10**7
        assert entry.context_tokens >= 4096
        assert entry.title and entry.licence and entry.description.endswith(".")
