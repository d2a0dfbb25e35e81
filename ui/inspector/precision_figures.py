"""What a KV precision costs, and how much of it has reached the cache."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.kv_text import bits_text, budget_text, pages_text
from engine.engine import LoadedModel
from engine.errors import OctavoError
from engine.kv.precision import BitsPair, KVSpec
from engine.kv.usage import KVUsage
from engine.wording import format_nbytes
from ui.live_precision import HeldCache
from ui.plain_text import plain_label

_NONE = "–"
_ROWS = {
    "Per token": "KV bytes per token",
    "Effective bits": "Effective bits of the KV cache",
    "In use now": "KV memory now",
    "Full context": "KV memory at full context",
    "Pages": "KV pages by tier",
    "Requested": "KV precision requested",
    "Held": "KV precision held",
    "Attention": "Attention caught by the budget",
}


class PrecisionFigures(QWidget):
    """A table of figures, and below it what is not yet as it is wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._names = {name: plain_label(name) for name in _ROWS}
        self._values = {name: plain_label(_NONE, wraps=True) for name in _ROWS}
        self._hint = plain_label(wraps=True)
        self._hint.setProperty("kind", "warning")
        grid = QGridLayout()
        grid.setVerticalSpacing(5)
        grid.setColumnStretch(1, 1)
        for line, (name, accessible_name) in enumerate(_ROWS.items()):
            self._names[name].setProperty("kind", "muted")
            self._values[name].setAccessibleName(accessible_name)
            grid.addWidget(self._names[name], line, 0)
            grid.addWidget(self._values[name], line, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(grid)
        column.addWidget(self._hint)

    def show_precision(
        self, spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None, is_open: bool
    ) -> None:
        """Show what `spec` costs, and what is held; `is_open` says that it is the open conversation's."""
        usage = held.usage if held is not None else None
        self._show_costs(spec, loaded, usage)
        self._set("In use now", format_nbytes(usage.nbytes) if usage else _NONE)
        self._set("Pages", pages_text(usage) if usage and usage.requested is not None else _NONE)
        self._set("Attention", budget_text(usage) if usage else "")
        apart = held is not None and is_open and _is_apart(spec, held)
        self._set("Requested", requested_text(spec, held) if held and apart else "")
        self._set("Held", held_text(held.usage) if held and apart else "")
        hints = _hints(spec, loaded, held if is_open else None)
        self._hint.setText("\n".join(hints))
        self._hint.setVisible(bool(hints))

    def _show_costs(self, spec: KVSpec, loaded: LoadedModel | None, usage: KVUsage | None) -> None:
        if loaded is None:
            for name in ("Per token", "Effective bits", "Full context"):
                self._set(name, _NONE)
            return
        plan = loaded.plan_at(spec)
        self._set("Per token", format_nbytes(plan.kv_nbytes_per_token))
        now = f", now {usage.effective_bits:.1f}" if usage and usage.effective_bits else ""
        self._set("Effective bits", f"{loaded.effective_bits_at(spec):.1f}{now}")
        self._set("Full context", f"{format_nbytes(plan.kv_nbytes)}, {plan.fitting_tokens:,} tokens")
        self._values["Full context"].setToolTip(f"The model was made for {plan.context_tokens:,} tokens.")

    def _set(self, name: str, text: str) -> None:
        """Show a figure; without words its row is left out."""
        self._values[name].setText(text)
        for label in (self._names[name], self._values[name]):
            label.setVisible(bool(text))


def uniform_bits(spec: KVSpec) -> BitsPair | None:
    """Return the bits of all layers and heads, None where rules differ."""
    rule = spec.rules[0]
    is_uniform = len(spec.rules) == 1 and (rule.first, rule.last, rule.head) == (0, None, None)
    return rule.bits if is_uniform else None


def requested_text(spec: KVSpec, held: HeldCache) -> str:
    """Return the bits that `spec` asks for: of rules by layer the mean, once the cache knows them."""
    bits, mean = uniform_bits(spec), held.usage.requested
    if bits is not None:
        return f"{bits} bits"
    return "custom" if mean is None or spec.rules != held.kv.rules else f"{bits_text(mean)} bits"


def held_text(usage: KVUsage) -> str:
    """Return the bits that the cold pages have."""
    return "no cold page yet" if usage.effective is None else f"{bits_text(usage.effective)} bits"


def _is_apart(spec: KVSpec, held: HeldCache) -> bool:
    usage = held.usage
    differs = usage.effective is not None and usage.effective != usage.requested
    return spec.rules != held.kv.rules or differs or usage.num_below > 0


def _hints(spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None) -> list[str]:
    hints = []
    if loaded is not None:
        try:
            spec.require_fit(loaded.info.num_layers, loaded.info.num_kv_heads)
        except OctavoError as error:
            hints.append(str(error))
    if held is None:
        return hints
    if (spec.page_tokens, spec.group_size) != (held.kv.page_tokens, held.kv.group_size):
        hints.append(
            "The new page or group size takes effect with the next message, "
            "which reads the conversation again."
        )
    if held.usage.num_below:
        hints.append(_below_text(held.usage))
    return hints


def _below_text(usage: KVUsage) -> str:
    count = usage.num_below
    is_all = usage.effective is not None and count == usage.cold_pages
    at = f"{bits_text(usage.effective)} bits" if is_all and usage.effective else "fewer bits"
    pages = "1 page stays" if count == 1 else f"{count:,} pages stay"
    return f"{pages} at {at} until the conversation is read again."
