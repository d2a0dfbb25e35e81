"""What a model will take, before it is loaded."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.models.inspection import inspect
from app.models.library import InstalledModel
from engine.backend import start_backend
from engine.budget import LoadPlan, plan_load
from engine.cancel import CancelToken
from engine.engine import LoadedModel
from engine.errors import OctavoError, sentence_of
from engine.kv.precision import PRESETS, KVSpec
from engine.memory import available_nbytes
from engine.model_info import ModelInfo
from engine.wording import format_nbytes
from ui.background import BackgroundJob, Report
from ui.inspector.presets import PresetButtons
from ui.plain_text import plain_label
from ui.theme import Theme

_CHOICES = {"16-bit": KVSpec.parse("16")} | {name.capitalize(): spec for name, spec in PRESETS.items()}
_NAMES = (
    "Weights in memory",
    "Weights on disk",
    "KV cache per token",
    "Memory available",
    "Context that fits",
)


class LoadSheet(QDialog):
    """Shows the memory plan of a model; `accepted` means load it with the precision `kv`."""

    def __init__(
        self, model: InstalledModel, kv: KVSpec, present: LoadedModel | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Load model")
        self.model = model
        self.kv = kv
        self._present = present
        self._info: ModelInfo | None = None
        self._available_nbytes = 0
        self._title = plain_label(model.title, wraps=True)
        self._title.setProperty("kind", "title")
        self._subtitle = plain_label("Reading the model's description…", wraps=True)
        self._subtitle.setProperty("kind", "muted")
        self._precision = PresetButtons(_CHOICES)
        self._precision.chosen.connect(self._on_chosen)
        self._custom = plain_label(wraps=True)
        self._custom.setProperty("kind", "muted")
        self._values = {name: plain_label("–") for name in _NAMES}
        self._bar = MemoryBar()
        self._verdict = plain_label(wraps=True)
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self.reject)
        self._load = QPushButton("Load")
        self._load.setProperty("kind", "primary")
        self._load.setDefault(True)
        self._load.setEnabled(False)
        self._load.clicked.connect(self.accept)
        self._lay_out()
        self._on_chosen(kv)
        self._inspect(model.path)

    def _lay_out(self) -> None:
        facts = QGridLayout()
        facts.setColumnStretch(1, 1)
        facts.setHorizontalSpacing(24)
        facts.setVerticalSpacing(8)
        for line, (name, value) in enumerate(self._values.items()):
            label = QLabel(name)
            label.setProperty("kind", "muted")
            value.setAccessibleName(name)
            facts.addWidget(label, line, 0)
            facts.addWidget(value, line, 1)
        choice = QHBoxLayout()
        choice.addWidget(QLabel("KV cache precision"))
        choice.addStretch(1)
        choice.addWidget(self._precision)
        self._precision.setMinimumWidth(300)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._load)
        rule = QFrame()
        rule.setProperty("kind", "line")
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 22, 24, 20)
        column.setSpacing(14)
        column.addWidget(self._title)
        column.addWidget(self._subtitle)
        column.addWidget(rule)
        column.addLayout(choice)
        column.addWidget(self._custom)
        column.addLayout(facts)
        column.addWidget(self._bar)
        column.addWidget(self._verdict)
        column.addSpacing(4)
        column.addLayout(buttons)
        self.setFixedWidth(500)

    def _inspect(self, path: Path) -> None:
        def work(_cancel: CancelToken, _report: Report) -> tuple[ModelInfo, int]:
            return inspect(path), available_nbytes()

        job = BackgroundJob(work)
        job.done.connect(self._on_inspected)
        job.failed.connect(self._on_failed)
        job.start()

    def _on_inspected(self, found: tuple[ModelInfo, int]) -> None:
        self._info, self._available_nbytes = found
        if self._present is not None:
            self._available_nbytes += self._present.plan.weights_nbytes
        info = self._info
        self._title.setText(info.name)
        self._subtitle.setText(
            f"{info.architecture} · {info.quantization} · {_count(info.num_parameters)} parameters · "
            f"{info.format.value}"
        )
        self._refresh()
        self._load.setFocus()

    def _on_failed(self, error: Exception) -> None:
        self._subtitle.setText("")
        self._say(sentence_of(error), "danger")

    def _on_chosen(self, kv: KVSpec) -> None:
        self.kv = kv
        self._precision.set_spec(kv)
        self._custom.setText(f"As in the side pane: {kv}")
        self._custom.setVisible(self._precision.is_none_down)
        self._refresh()

    def _refresh(self) -> None:
        if self._info is None:
            return
        plan = plan_load(self._info, start_backend(), self.kv, self._available_nbytes)
        where = "" if self._present is None else f" once {self._present.info.name} is ejected"
        values = (
            format_nbytes(plan.weights_nbytes),
            format_nbytes(self._info.weights_nbytes),
            format_nbytes(plan.kv_nbytes_per_token),
            format_nbytes(plan.available_nbytes) + where,
            f"{plan.fitting_tokens:,} of {plan.context_tokens:,} tokens",
        )
        for label, text in zip(self._values.values(), values, strict=True):
            label.setText(text)
        self._bar.set_plan(plan)
        sentence, kind = self._judge(plan)
        self._load.setEnabled(kind != "danger")
        self._say(sentence, kind)

    def _judge(self, plan: LoadPlan) -> tuple[str, str]:
        assert self._info is not None
        try:
            plan.require_fit(self._info)
            self.kv.require_fit(self._info.num_layers, self._info.num_kv_heads)
        except OctavoError as error:
            return str(error), "danger"
        if plan.fitting_tokens < plan.context_tokens:
            return (
                f"Memory holds {plan.fitting_tokens:,} of the {plan.context_tokens:,} tokens that the model "
                "was made for. A lower KV precision holds more.",
                "warning",
            )
        if plan.dequantize:
            return "On this processor the weights are kept in 32 bits, which makes it much faster.", "muted"
        return "", "muted"

    def _say(self, sentence: str, kind: str) -> None:
        self._verdict.setVisible(bool(sentence))
        self._verdict.setText(sentence)
        self._verdict.setProperty("kind", kind)
        self._verdict.style().unpolish(self._verdict)
        self._verdict.style().polish(self._verdict)
        self.adjustSize()


class MemoryBar(QWidget):
    """The memory that is available, and how much of it weights and a full context take."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan: LoadPlan | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_plan(self, plan: LoadPlan) -> None:
        """Show `plan`."""
        self._plan = plan
        self.setAccessibleName("Memory plan")
        self.setAccessibleDescription(
            ", ".join(f"{name} {format_nbytes(size)}" for name, size, _ in self._parts())
        )
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of the bar and its legend."""
        return QSize(200, 20 + self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar and the legend below it."""
        if self._plan is None:
            return
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        clip = QPainterPath()
        clip.addRoundedRect(0, 0, self.width(), 10, 5, 5)
        parts = self._parts()
        whole = max(self._plan.available_nbytes, sum(size for _, size, _ in parts), 1)
        painter.save()
        painter.setClipPath(clip)
        painter.fillRect(0, 0, self.width(), 10, palette.color("border"))
        left = 0.0
        for _, size, role in parts:
            width = self.width() * size / whole
            painter.fillRect(round(left), 0, max(2, round(width)), 10, palette.color(role))
            left += width
        painter.restore()
        self._paint_legend(painter)

    def _paint_legend(self, painter: QPainter) -> None:
        palette = Theme.current().palette
        metrics = self.fontMetrics()
        left, baseline = 0, 18 + metrics.ascent()
        for name, size, role in self._parts():
            text = f"{name} {format_nbytes(size)}"
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(palette.color(role))
            painter.drawEllipse(left, baseline - 9, 8, 8)
            painter.setPen(palette.color("text_muted"))
            painter.drawText(left + 13, baseline, text)
            left += 13 + metrics.horizontalAdvance(text) + 18

    def _parts(self) -> list[tuple[str, int, str]]:
        if self._plan is None:
            return []
        return [
            ("Weights", self._plan.weights_nbytes, "accent"),
            ("Full context", self._plan.kv_nbytes, "info"),
            ("Reserve", self._plan.reserve_nbytes, "text_faint"),
        ]


def _count(number: int) -> str:
    """Return a count of parameters as people say it: `135 M`, `1.7 B`."""
    if number >= 1_000_000_000:
        return f"{number / 1e9:.1f} B"
    return f"{number / 1e6:.0f} M"
