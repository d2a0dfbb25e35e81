"""The way that Tab takes through the conversation.

Qt goes through widgets in the order in which they were made; messages are made from the newest to the oldest,
and texts after the buttons below them.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QWidget


def chain_after(first: QWidget, stops: Iterable[QWidget]) -> None:
    """Let Tab go from `first` through `stops`, in their order."""
    for stop in stops:
        QWidget.setTabOrder(first, stop)
        first = stop


def chain_before(last: QWidget, stops: Iterable[QWidget]) -> None:
    """Let Tab go through `stops`, in their order, just before it comes to `last`."""
    chain_after(last, [*stops, last])  # the last step takes `last` from before them to behind them
