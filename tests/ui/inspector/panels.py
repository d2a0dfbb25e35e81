"""Panels of the KV precision on the screen."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from engine.kv.precision import KVSpec
from ui.inspector.precision import PrecisionPanel

CUSTOM = KVSpec.parse("0-7:8, 8-:k6v4; page=128, group=32, hot=2, warm=0, attend=10, grow=1")


def shown(qtbot: QtBot, spec: KVSpec) -> PrecisionPanel:
    panel = PrecisionPanel(spec)
    qtbot.addWidget(panel)
    panel.resize(240, 700)
    panel.show()
    qtbot.waitExposed(panel)
    return panel
