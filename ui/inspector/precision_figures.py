"""What a KV precision costs, and how much of it has reached the cache."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.kv_text import bits_text, budget_text, pages_text
from engine.budget import layer_shapes
from engine.engine import LoadedModel
from engine.kv.layer_bits import mean_bits
from engine.kv.precision import BitsPair, KVSpec
from engine.kv.usage import KVUsage
from engine.wording import format_nbytes
from ui.chat.elided_label import ElidedLabel
from ui.live_precision import HeldCache
from ui.plain_text import plain_label

_NONE = "–"
_ROWS = {
    "Per token": "KV bytes per token",
    "Effective bits": "Effective bits of the KV cache",
    "In use now": "KV memory now",
    "When full": "KV memory at full context",
    "Safe context": "Safe context",
    "Fits": "Context that fits",
    "Pages": "KV pages by tier",
    "Attention": "Attention caught by the budget",
    "Requested": "KV precision requested",
    "Held": "KV precision held",
}
_TIPS = {
    "Per token": "What a token keeps in memory once its page is cold, in all layers",
    "Effective bits": "What a number in the cache costs on average, scales included; now: in the pages held",
    "When full": "The KV cache with all the tokens that fit",
    "Safe context": "So many tokens leave room for surprises, such as other programs",
    "Fits": "So many tokens fit into the memory that is left, of those that the model was made for",
    "Held": "What the cold pages have now",
}


class PrecisionFigures(QWidget):
    """A table of figures, whose rows stay where they are.

    Attributes:
        is_apart: whether the cache holds something else than what is asked for.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_apart = False
        self._values = {name: ElidedLabel(_NONE) for name in _ROWS}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        grid.setHorizontalSpacing(12)
        grid.setColumnStretch(1, 1)
        for line, (name, accessible_name) in enumerate(_ROWS.items()):
            title, value = plain_label(name), self._values[name]
            title.setProperty("kind", "muted")
            title.setToolTip(_TIPS.get(name, ""))
            value.setAccessibleName(accessible_name)
            value.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            grid.addWidget(title, line, 0)
            grid.addWidget(value, line, 1)

    def show_precision(
        self, spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None, is_open: bool
    ) -> None:
        """Show what `spec` costs, and what is held; `is_open` says that it is the open conversation's."""
        usage = held.usage if held is not None else None
        self._show_costs(spec, loaded, usage)
        self._set("In use now", format_nbytes(usage.nbytes) if usage else _NONE)
        self._set("Pages", pages_text(usage) if usage and usage.requested is not None else _NONE)
        reads = "reads all pages" if spec.attention_pages is None else f"{spec.attention_pages:,} pages"
        self._set("Attention", (usage and budget_text(usage)) or reads)
        self._set("Requested", requested_text(spec, loaded))
        self._set("Held", held_text(usage) if usage and is_open else _NONE)
        self.is_apart = held is not None and is_open and _is_apart(spec, held)
        _set_kind(self._values["Held"], "warning" if self.is_apart else "")

    def _show_costs(self, spec: KVSpec, loaded: LoadedModel | None, usage: KVUsage | None) -> None:
        if loaded is None:
            for name in ("Per token", "Effective bits", "When full", "Safe context", "Fits"):
                self._set(name, _NONE)
            return
        plan = loaded.plan_at(spec)
        self._set("Per token", format_nbytes(plan.kv_nbytes_per_token))
        now = f", now {usage.effective_bits:.1f}" if usage and usage.effective_bits else ""
        self._set("Effective bits", f"{loaded.effective_bits_at(spec):.1f}{now}")
        is_over = usage is not None and usage.nbytes > plan.kv_nbytes  # as after less memory was allowed
        self._set("When full", "more than fits is in use" if is_over else format_nbytes(plan.kv_nbytes))
        self._set("Safe context", f"{plan.safe_tokens:,} tokens")
        is_all = plan.fitting_tokens == plan.context_tokens
        fitting = "all" if is_all else f"{plan.fitting_tokens:,} of"
        self._set("Fits", f"{fitting} {plan.context_tokens:,} tokens")

    def _set(self, name: str, text: str) -> None:
        if self._values[name].text() != text:
            self._values[name].setText(text)


def uniform_bits(spec: KVSpec) -> BitsPair | None:
    """Return the bits of all layers and heads, None where rules differ."""
    rule = spec.rules[0]
    is_uniform = len(spec.rules) == 1 and (rule.first, rule.last, rule.head) == (0, None, None)
    return rule.bits if is_uniform else None


def requested_text(spec: KVSpec, loaded: LoadedModel | None) -> str:
    """Return the bits that `spec` asks for: of rules by layer the mean, where a model tells its layers."""
    bits = uniform_bits(spec)
    if bits is not None:
        return f"{bits} bits"
    mean = mean_bits(spec, layer_shapes(loaded.info)) if loaded is not None else None
    return "by layer" if mean is None else f"{bits_text(mean)} on average"


def held_text(usage: KVUsage) -> str:
    """Return the bits that the cold pages have."""
    return "no cold page yet" if usage.effective is None else f"{bits_text(usage.effective)} bits"


def _is_apart(spec: KVSpec, held: HeldCache) -> bool:
    usage = held.usage
    differs = usage.effective is not None and usage.effective != usage.requested
    return spec.rules != held.kv.rules or differs or usage.num_below > 0


def _set_kind(label: QLabel, kind: str) -> None:
    if label.property("kind") != kind:
        label.setProperty("kind", kind)
        label.style().polish(label)
