"""The KV precision: how many bits, by name, by slider, by layer or as text, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.budget import kv_nbytes_per_token
from engine.engine import LoadedModel
from engine.kv.layer_bits import head_bits, layer_bits, with_all_bits, with_layer_bits
from engine.kv.precision import MOST, PRESETS, BitsPair, KVSpec
from engine.wording import format_nbytes
from ui.inspector.bits_slider import BitsSlider
from ui.inspector.equalizer import Equalizer
from ui.inspector.fold import Fold
from ui.inspector.layer_figures import describe_layers, layers_of
from ui.inspector.precision_details import PrecisionDetails
from ui.inspector.precision_figures import PrecisionFigures
from ui.inspector.precision_text import PrecisionText
from ui.inspector.presets import PresetButtons
from ui.inspector.reread import RereadNotice
from ui.live_precision import HeldCache, Reread

_FIGURES_MS = 60
"""The plan for a precision takes a while with many layers: while the mouse drags, it is made this often."""
_PRESETS = {name.capitalize(): spec for name, spec in PRESETS.items()}


class PrecisionPanel(QWidget):
    """Edits a `KVSpec` and shows its figures.

    Presets, sliders, bars and the text show the same precision at any moment, also while a mouse drags one of
    them; it is chosen once the mouse lets go.

    Attributes:
        spec: the precision chosen.

    Signals:
        spec_chosen: the `KVSpec` that the user chose.
        grabbed: whether the mouse holds a slider or bars.
        text_refused: a text cannot be; the widget with the text and the reason.
        rebuild_requested: the conversation is to be read again.
        rebuild_stopped: reading it again is to stop.
    """

    spec_chosen = Signal(object)
    grabbed = Signal(bool)
    text_refused = Signal(QWidget)
    rebuild_requested = Signal()
    rebuild_stopped = Signal()

    def __init__(self, spec: KVSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self._shown = spec
        self._loaded: LoadedModel | None = None
        self._held: HeldCache | None = None
        self._is_open = False
        self._presets = PresetButtons(_PRESETS)
        self._presets.chosen.connect(self._choose)
        self._keys = BitsSlider("Keys", "key")
        self._values = BitsSlider("Values", "value")
        self._connect_slider(self._keys)
        self._connect_slider(self._values)
        self._equalizer = Equalizer(self._describe_layers)
        self._equalizer.moved.connect(lambda bits: self._preview(with_layer_bits(self.spec, bits)))
        self._equalizer.chosen.connect(self._choose_layers)
        self._equalizer.grabbed.connect(self.grabbed)
        self._text = PrecisionText()
        self._text.spec_chosen.connect(self._choose_text)
        self._text.refused.connect(lambda: self.text_refused.emit(self._text))
        self._details = PrecisionDetails()
        self._details.spec_chosen.connect(self._choose)
        self._figures = PrecisionFigures()
        self._figures_timer = QTimer(self)
        self._figures_timer.setSingleShot(True)
        self._figures_timer.setInterval(_FIGURES_MS)
        self._figures_timer.timeout.connect(self._show_figures)
        self._notice = RereadNotice()
        self._notice.requested.connect(self.rebuild_requested)
        self._notice.stopped.connect(self.rebuild_stopped)
        self._lay_out()
        self.set_model(None)
        self.set_spec(spec)

    def set_spec(self, spec: KVSpec) -> None:
        """Show `spec`, silently."""
        self._show_spec(spec)
        self._equalizer.usual = _usual(spec, self._num_layers)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures of the loaded model; None when there is none."""
        if loaded is not self._loaded:
            self._loaded = loaded
            self._text.set_model(loaded)
            self._show_settled()
            self._equalizer.usual = _usual(self.spec, self._num_layers)

    def set_held(self, held: HeldCache | None, is_open: bool) -> None:
        """Show what the engine holds, and whether that is the open conversation."""
        self._held, self._is_open = held, is_open
        self._show_figures()

    def set_reread(self, reread: Reread) -> None:
        """Show whether the conversation can be read again now, and how far it is."""
        self._notice.set_reread(reread)

    @property
    def _num_layers(self) -> int:
        return 0 if self._loaded is None else self._loaded.info.num_layers

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for widget in (
            self._presets,
            self._keys,
            self._values,
            self._equalizer,
            self._text,
            self._figures,
            self._notice,
            Fold("More", self._details),
        ):
            column.addWidget(widget)

    def _connect_slider(self, slider: BitsSlider) -> None:
        slider.moved.connect(lambda: self._preview(self._slid(slider)))
        slider.chosen.connect(lambda: self._choose(self._slid(slider)))
        slider.grabbed.connect(self.grabbed)

    def _slid(self, slider: BitsSlider) -> KVSpec:
        """Return the precision with a slider's bits in all layers, the rest as it is."""
        if slider is self._keys:
            spec = with_all_bits(self.spec, keys=slider.bits)
        else:
            spec = with_all_bits(self.spec, values=slider.bits)
        return with_layer_bits(spec, layer_bits(spec, self._num_layers)) if self._loaded else spec

    def _choose(self, spec: KVSpec) -> None:
        self.set_spec(spec)
        self.spec_chosen.emit(spec)

    def _choose_layers(self, bits: Sequence[BitsPair]) -> None:
        """Take bits by layer over; what a layer is set back to stays what it was."""
        spec = with_layer_bits(self.spec, bits)
        self._show_spec(spec)
        self.spec_chosen.emit(spec)

    def _choose_text(self, spec: KVSpec) -> None:
        is_other = spec != self.spec
        self.set_spec(spec)
        if is_other:
            self.spec_chosen.emit(spec)

    def _show_spec(self, spec: KVSpec) -> None:
        self.spec = spec
        self._text.set_spec(spec)
        self._details.set_spec(spec)
        self._show_settled()

    def _preview(self, spec: KVSpec) -> None:
        """Show a precision that is only passed through, except in what the mouse holds."""
        self._text.set_spec(spec)
        self._show_bits(spec)
        if not self._figures_timer.isActive():
            self._figures_timer.start()

    def _show_settled(self) -> None:
        """Show the precision chosen everywhere but as text, which may be about to be typed."""
        self._show_bits(self.spec)
        self._equalizer.set_layers(layers_of(self.spec, self._loaded))
        self._presets.set_tips([self._tip(preset) for preset in self._presets.specs])
        self._show_figures()

    def _show_bits(self, spec: KVSpec) -> None:
        self._shown = spec
        self._presets.set_spec(spec)
        pairs, usual = _pairs(spec, self._num_layers), _usual(spec, self._num_layers)
        self._keys.show_bits(usual.keys, is_mixed=len({pair.keys for pair in pairs}) > 1)
        self._values.show_bits(usual.values, is_mixed=len({pair.values for pair in pairs}) > 1)
        self._equalizer.preview_layers(layers_of(spec, self._loaded))

    def _describe_layers(self, first: int, last: int) -> str:
        assert self._loaded is not None  # without a model there are no layers
        return describe_layers(self._shown, self._loaded, first, last)

    def _tip(self, spec: KVSpec) -> str:
        if self._loaded is None:
            return f"Cold pages at {spec.rules[0]} bits"
        nbytes = kv_nbytes_per_token(self._loaded.info, self._loaded.backend, spec)
        return f"Cold pages at {spec.rules[0]} bits: {format_nbytes(nbytes)} per token"

    def _show_figures(self) -> None:
        self._figures.show_precision(self._shown, self._loaded, self._held, self._is_open)
        self._notice.show_held(self._shown, self._loaded, self._held if self._is_open else None)


def _pairs(spec: KVSpec, num_layers: int) -> set[BitsPair]:
    """Return all bits that a precision gives to layers and heads; 0 layers where there is no model."""
    if not num_layers:
        unnamed = spec.bits(MOST, MOST)
        return {unnamed, *(rule.bits for rule in spec.rules)}
    heads = {bits for layer in head_bits(spec, num_layers) for bits in layer.values()}
    return heads | set(layer_bits(spec, num_layers))


def _usual(spec: KVSpec, num_layers: int) -> BitsPair:
    """Return the bits that most layers have; of all layers that there can be where there is no model."""
    return Counter(layer_bits(spec, num_layers) or [spec.bits(MOST, MOST)]).most_common(1)[0][0]
