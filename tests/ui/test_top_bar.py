from __future__ import annotations

from tests.ui.conftest import Desk


def test_a_short_profile_name_leaves_its_room_to_the_model(desk: Desk) -> None:
    window = desk.open()
    bar = window.top_bar
    bar.model_button.ensurePolished()
    metrics = bar.model_button.fontMetrics()
    both = metrics.horizontalAdvance("Choose a model") + metrics.horizontalAdvance("Chat")
    bar.resize(280 + both + 8, bar.height())
    assert (bar.profile_button.text(), bar.model_button.text()) == ("Chat", "Choose a model")
