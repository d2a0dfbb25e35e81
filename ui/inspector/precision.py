"""The KV precision: how many bits, by name or by slider, and what that costs."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.engine import LoadedModel
from engine.kv.precision import MOST, PRESETS, BitsPair, KVSpec, PrecisionRule
from engine.wording import format_nbytes
from ui.inspector.bits_slider import BitsSlider
from ui.inspector.fold import Fold
from ui.inspector.precision_details import PrecisionDetails
from ui.inspector.precision_figures import PrecisionFigures, uniform_bits
from ui.inspector.presets import PresetButtons
from ui.live_precision import HeldCache
from ui.plain_text import plain_label

_PRESETS = {name.capitalize(): spec for name, spec in PRESETS.items()}


class PrecisionPanel(QWidget):
    """Edits a `KVSpec` and shows its figures.

    Attributes:
        spec: the precision shown.

    Signals:
        spec_chosen: the `KVSpec` that the user chose.
        text_refused: a text cannot be; the widget with the text and the reason.
    """

    spec_chosen = Signal(object)
    text_refused = Signal(QWidget)

    def __init__(self, spec: KVSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self._loaded: LoadedModel | None = None
        self._held: HeldCache | None = None
        self._is_open = False
        self._presets = PresetButtons(_PRESETS)
        self._presets.chosen.connect(self._choose)
        self._keys = BitsSlider("Keys", "key")
        self._values = BitsSlider("Values", "value")
        for slider in (self._keys, self._values):
            slider.moved.connect(lambda: self._show_figures(self._slid()))
            slider.chosen.connect(lambda: self._choose(self._slid()))
        self._custom = plain_label(wraps=True)
        self._custom.setProperty("kind", "muted")
        self._custom.setToolTip("Layers or heads differ. Moving a slider gives all of them the same bits.")
        self._details = PrecisionDetails()
        self._details.spec_chosen.connect(self._choose)
        self._details.text_refused.connect(self.text_refused)
        self._figures = PrecisionFigures()
        self._lay_out()
        self.set_model(None)
        self.set_spec(spec)

    def set_spec(self, spec: KVSpec) -> None:
        """Show `spec`, silently."""
        self.spec = spec
        bits = uniform_bits(spec)
        shown = bits or spec.bits(MOST, MOST)
        self._presets.set_spec(spec)
        self._show_tips()
        self._keys.set_bits(shown.keys, is_mixed=bits is None)
        self._values.set_bits(shown.values, is_mixed=bits is None)
        self._custom.setText(f"Custom: {', '.join(str(rule) for rule in spec.rules)}")
        self._custom.setVisible(bits is None)
        self._details.set_spec(spec)
        self._show_figures(spec)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures of the loaded model; None when there is none."""
        self._loaded = loaded
        self._details.set_model(loaded)
        self._show_tips()
        self._show_figures(self.spec)

    def set_held(self, held: HeldCache | None, is_open: bool) -> None:
        """Show what the engine holds, and whether that is the open conversation."""
        self._held, self._is_open = held, is_open
        self._show_figures(self.spec)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self._presets)
        column.addWidget(self._keys)
        column.addWidget(self._values)
        column.addWidget(self._custom)
        column.addWidget(self._figures)
        column.addWidget(Fold("More", self._details))

    def _slid(self) -> KVSpec:
        """Return the precision with the sliders' bits in all layers, the rest as it is."""
        rule = PrecisionRule(0, None, None, BitsPair(self._keys.bits, self._values.bits))
        return dataclasses.replace(self.spec, rules=(rule,))

    def _choose(self, spec: KVSpec) -> None:
        self.set_spec(spec)
        self.spec_chosen.emit(spec)

    def _show_tips(self) -> None:
        self._presets.set_tips([self._tip(spec) for spec in self._presets.specs])

    def _tip(self, spec: KVSpec) -> str:
        if self._loaded is None:
            return f"Cold pages at {spec.rules[0]} bits"
        nbytes = self._loaded.plan_at(spec).kv_nbytes_per_token
        return f"Cold pages at {spec.rules[0]} bits: {format_nbytes(nbytes)} per token"

    def _show_figures(self, spec: KVSpec) -> None:
        self._figures.show_precision(spec, self._loaded, self._held, self._is_open)
