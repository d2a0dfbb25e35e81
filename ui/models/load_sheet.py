"""What a model will take, before it is loaded, and what would fit where it does not."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.models.inspection import inspect
from app.models.library import InstalledModel
from app.profiles import Profile
from engine.admission import AdmissionError, Choice, LowerPrecision, ShorterContext, SmallerModel
from engine.backend import start_backend
from engine.budget import LoadPlan, kv_nbytes
from engine.cancel import CancelToken
from engine.engine import LoadedModel
from engine.errors import OctavoError, sentence_of
from engine.figures import latest
from engine.headroom import headroom_nbytes, taken_nbytes
from engine.kv.precision import PRESETS, KVSpec
from engine.load_admission import LoadWish
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelInfo
from engine.wording import format_nbytes, format_parameters
from ui.admission import ChoiceButtons, confirm_anyway, risk_words
from ui.background import BackgroundJob, Report
from ui.chat.focus_order import chain_before
from ui.inspector.presets import PresetButtons
from ui.models.memory_bar import MemoryBar
from ui.models.plan_words import planned_tokens, remark
from ui.plain_text import plain_label

_CHOICES = {"16-bit": KVSpec.parse("16")} | {name.capitalize(): spec for name, spec in PRESETS.items()}
_NAMES = (
    "Weights in memory",
    "Weights on disk",
    "KV cache per token",
    "Memory available",
    "Context that fits",
    "Safe context",
    "Context limit",
)


class LoadSheet(QDialog):
    """Shows the memory plan of a model; `accepted` means load it with `kv` and `max_context`.

    Attributes:
        model: the model.
        kv: the precision that was chosen.
        max_context: the context that has to fit, None for the shortest.
        anyway: whether it is to be loaded though it does not fit.

    Signals:
        smaller_wanted: another model is wanted, whose weights take at most so many bytes.
    """

    smaller_wanted = Signal(object)

    def __init__(
        self,
        model: InstalledModel,
        profile: Profile,
        limits: MemoryLimits,
        present: LoadedModel | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Load model")
        self.model = model
        self.kv = profile.kv
        self.max_context = profile.max_context
        self.anyway = False
        self._limits = limits
        self._present = present
        self._info: ModelInfo | None = None
        self._refusal: AdmissionError | None = None
        self._available_nbytes = self._taken_nbytes = 0
        self._title = plain_label(model.title, wraps=True)
        self._title.setProperty("kind", "title")
        self._subtitle = plain_label("Reading the model's description…", wraps=True)
        self._subtitle.setProperty("kind", "muted")
        self._precision = PresetButtons(_CHOICES)
        self._precision.chosen.connect(self._on_precision)
        self._custom = plain_label(wraps=True)
        self._custom.setProperty("kind", "muted")
        self._values = {name: plain_label("–") for name in _NAMES}
        self._bar = MemoryBar()
        self._verdict = plain_label(wraps=True)
        self._choices = ChoiceButtons("Load anyway…")
        self._choices.chosen.connect(self._on_choice)
        self._choices.anyway.connect(self._on_anyway)
        self._choices.hide()
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self.reject)
        self._load = QPushButton("Load")
        self._load.setProperty("kind", "primary")
        self._load.setDefault(True)
        self._load.setEnabled(False)
        self._load.clicked.connect(self.accept)
        self._lay_out()
        self._on_precision(self.kv)
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
        column.addWidget(self._choices)
        column.addSpacing(4)
        column.addLayout(buttons)
        self.setFixedWidth(500)

    def _inspect(self, path: Path) -> None:
        def work(_cancel: CancelToken, _report: Report) -> tuple[ModelInfo, int, int]:
            return inspect(path), headroom_nbytes(MemoryLimits()), taken_nbytes()

        job = BackgroundJob(work)
        job.done.connect(self._on_inspected)
        job.failed.connect(self._on_failed)
        job.start()

    def _on_inspected(self, found: tuple[ModelInfo, int, int]) -> None:
        self._info, self._available_nbytes, self._taken_nbytes = found
        if self._present is not None:
            given_back = self._present.plan.weights_nbytes + latest().kv.total
            self._available_nbytes += given_back
            self._taken_nbytes = max(0, self._taken_nbytes - given_back)
        info = self._info
        self._title.setText(info.name)
        parameters = f"{format_parameters(info.num_parameters)} parameters"
        self._subtitle.setText(
            f"{info.architecture} · {info.quantization} · {parameters} · {info.format.value}"
        )
        self._refresh()
        (self._load if self._load.isEnabled() else self._cancel).setFocus()

    def _on_failed(self, error: Exception) -> None:
        self._subtitle.setText("")
        self._say(sentence_of(error), "danger")

    def _on_precision(self, kv: KVSpec) -> None:
        self.kv = kv
        self._precision.set_spec(kv)
        self._custom.setText(f"As in the side pane: {kv}")
        self._custom.setVisible(self._precision.is_none_down)
        self._refresh()

    def _on_choice(self, choice: Choice) -> None:
        match choice:
            case LowerPrecision(kv):
                self._on_precision(kv)
            case ShorterContext(max_context):
                self.max_context = max_context
                self._refresh()
            case SmallerModel(weights_nbytes):
                self.smaller_wanted.emit(weights_nbytes)
                self.reject()
        if self._load.isEnabled():
            self._load.setFocus()

    def _on_anyway(self) -> None:
        if confirm_anyway(self, "Load anyway", risk_words("The model", self._refusal), "Load anyway"):
            self.anyway = True
            self.accept()

    def _refresh(self) -> None:
        if self._info is None:
            return
        info = self._info.with_context(self.max_context)
        wish = LoadWish(
            info,
            start_backend(),
            self.kv,
            self.max_context,
            self._available_nbytes,
            self._limits,
            self._taken_nbytes,
        )
        refusal: OctavoError | None = None
        try:
            self.kv.require_fit(info.num_layers, info.num_kv_heads)
            plan = wish.plan(anyway=False)
        except OctavoError as error:
            plan, refusal = wish.plan(anyway=True), error
        tokens = wish.least_tokens if refusal is not None else planned_tokens(plan, self.max_context)
        context_nbytes = kv_nbytes(info, start_backend(), self.kv, tokens)
        self._show_figures(info, plan)
        self._values["KV cache per token"].setText(
            f"{format_nbytes(plan.kv_nbytes_per_token)} once cold, {format_nbytes(context_nbytes // tokens)} "
            f"over {tokens:,} tokens"
        )
        self._bar.set_plan(plan, tokens, context_nbytes)
        self._load.setEnabled(refusal is None)
        self._show_choices(refusal)
        self._say(*((str(refusal), "danger") if refusal is not None else remark(plan, self.max_context)))

    def _show_figures(self, info: ModelInfo, plan: LoadPlan) -> None:
        where = "" if self._present is None else f" once {self._present.info.name} is ejected"
        if plan.usable_nbytes < plan.available_nbytes:
            where += ", as set"
        share = round(100 * self._limits.safe_share)
        limit = "none" if self.max_context is None else f"{self.max_context:,} tokens"
        values = (
            format_nbytes(plan.weights_nbytes),
            format_nbytes(info.weights_nbytes),
            "",
            format_nbytes(plan.usable_nbytes) + where,
            f"{plan.fitting_tokens:,} of {plan.context_tokens:,} tokens",
            f"{plan.safe_tokens:,} tokens, {share} % of the room",
            limit,
        )
        for label, text in zip(self._values.values(), values, strict=True):
            label.setText(text)

    def _show_choices(self, refusal: OctavoError | None) -> None:
        self._refusal = refusal if isinstance(refusal, AdmissionError) else None
        is_admission = isinstance(refusal, AdmissionError)
        if isinstance(refusal, AdmissionError):
            self._choices.show_choices(refusal.choices, refusal.can_override)
            chain_before(self._cancel, self._choices.focus_stops)
        self._choices.setVisible(is_admission)

    def _say(self, sentence: str, kind: str) -> None:
        self._verdict.setVisible(bool(sentence))
        self._verdict.setText(sentence)
        self._verdict.setProperty("kind", kind)
        self._verdict.style().unpolish(self._verdict)
        self._verdict.style().polish(self._verdict)
        self.adjustSize()
