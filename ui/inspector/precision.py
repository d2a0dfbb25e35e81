"""The KV precision: three choices, and what each costs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.budget import LoadPlan
from engine.engine import LoadedModel
from engine.events import GenerationStats
from engine.kv.precision import KVBits
from engine.wording import format_nbytes


class PrecisionButtons(QFrame):
    """Three buttons of which one is down: 16, 8 or 4 bits.

    Signals:
        bits_chosen: the `KVBits` that the user chose.
    """

    bits_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("segments")
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(2)
        for bits in KVBits:
            button = QPushButton(f"{int(bits)}-bit")
            button.setProperty("kind", "segment")
            button.setCheckable(True)
            button.setAccessibleName(f"KV cache in {int(bits)} bits")
            self._group.addButton(button, int(bits))
            row.addWidget(button, 1)
        self._group.idClicked.connect(self._on_clicked)
        self.set_bits(KVBits.BITS_16)

    @property
    def bits(self) -> KVBits:
        """The precision chosen now."""
        return KVBits(self._group.checkedId())

    def set_bits(self, bits: KVBits) -> None:
        """Show `bits` as chosen."""
        self._group.button(int(bits)).setChecked(True)

    def set_tip(self, bits: KVBits, tip: str) -> None:
        """Give one button a tooltip."""
        self._group.button(int(bits)).setToolTip(tip)

    def _on_clicked(self, bits: int) -> None:
        self.bits_chosen.emit(KVBits(bits))


class PrecisionPanel(QWidget):
    """The choice of precision, and the memory that it takes for the loaded model.

    Signals:
        bits_chosen: the `KVBits` that the user chose.
    """

    bits_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loaded: LoadedModel | None = None
        self._held: GenerationStats | None = None
        self._is_open = False
        self._buttons = PrecisionButtons()
        self._buttons.bits_chosen.connect(self._on_chosen)
        self._per_token = _value_label("KV bytes per token")
        self._now = _value_label("KV memory now")
        self._fits = _value_label("Context that fits")
        self._hint = QLabel()
        self._hint.setProperty("kind", "warning")
        self._hint.setWordWrap(True)
        self._hint.hide()
        self._lay_out()
        self._refresh()

    @property
    def bits(self) -> KVBits:
        """The precision chosen now."""
        return self._buttons.bits

    def set_bits(self, bits: KVBits) -> None:
        """Show `bits` as chosen."""
        self._buttons.set_bits(bits)
        self._refresh()

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures of the loaded model; None when there is none."""
        self._loaded = loaded
        for bits in KVBits:
            self._buttons.set_tip(bits, self._tip(bits))
        self._refresh()

    def set_held(self, stats: GenerationStats | None, is_open: bool) -> None:
        """Show what the engine holds since its last reply, and whether that is the open conversation."""
        self._held, self._is_open = stats, is_open
        self._refresh()

    def _lay_out(self) -> None:
        facts = QGridLayout()
        facts.setVerticalSpacing(5)
        facts.setColumnStretch(1, 1)
        names = ("Per token", "In use now", "Fits in memory")
        for line, (name, value) in enumerate(
            zip(names, (self._per_token, self._now, self._fits), strict=True)
        ):
            label = QLabel(name)
            label.setProperty("kind", "muted")
            facts.addWidget(label, line, 0)
            facts.addWidget(value, line, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self._buttons)
        column.addLayout(facts)
        column.addWidget(self._hint)

    def _on_chosen(self, bits: KVBits) -> None:
        self._refresh()
        self.bits_chosen.emit(bits)

    def _plan_for(self, bits: KVBits) -> LoadPlan | None:
        return None if self._loaded is None else self._loaded.plan_at(bits)

    def _tip(self, bits: KVBits) -> str:
        plan = self._plan_for(bits)
        meaning = "the model's own precision" if bits is KVBits.BITS_16 else f"{int(bits)} bits a value"
        if plan is None:
            return f"Keys and values in {meaning}"
        return f"Keys and values in {meaning}: {format_nbytes(plan.kv_nbytes_per_token)} per token"

    def _refresh(self) -> None:
        plan = self._plan_for(self.bits)
        self._per_token.setText(format_nbytes(plan.kv_nbytes_per_token) if plan else "–")
        self._fits.setText(f"{plan.fitting_tokens:,} tokens" if plan else "–")
        if plan is not None:
            self._fits.setToolTip(f"The model was made for {plan.context_tokens:,} tokens.")
        held = self._held
        self._now.setText(format_nbytes(held.kv_nbytes) if held else "–")
        differs = held is not None and self._is_open and held.kv_bits != int(self.bits)
        self._hint.setVisible(differs)
        if differs and held is not None:
            self._hint.setText(
                f"This conversation is held in {held.kv_bits} bits; "
                f"{int(self.bits)} bits apply from the next message."
            )


def _value_label(name: str) -> QLabel:
    label = QLabel("–")
    label.setAccessibleName(name)
    return label
