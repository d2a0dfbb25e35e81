from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from engine.kv.precision import KVSpec
from tests.ui.inspector.panels import shown
from ui.inspector.precision import PrecisionPanel


@pytest.fixture
def panel(qtbot: QtBot) -> PrecisionPanel:
    return shown(qtbot, KVSpec.parse("8"))
