"""What the engine's thread tells the window, as signals."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class EngineSignals(QObject):
    """The signals of the engine that mean the same on both sides.

    Signals:
        load_progress(LoadProgress): loading goes on.
        load_refused(Path, AdmissionError): a model that does not fit; the present one stays.
        kv_refused(PrecisionError): the model cannot have the precision and was loaded with the default.
        reply_started(Message): the reply has its row in the store, still empty.
        prefill_progress(int, PrefillProgress | SegmentProgress): message id, and how far the prompt is read.
        reply_finished(Message): the reply's final row.
        reply_unsaved(Message): the reply's final row could not be saved; `reply_finished` follows.
        reply_refused(int, int, AdmissionError): conversation and message that cannot be answered; no row was
            begun.
        kv_changed(int, CacheChanged | None): whose cache the engine holds now, and what is in it.
        pages_changed(int, PageMap | None): whose pages the engine holds, and which; only while they are
            watched, twice a second at most.
        context_usage_changed(int, ContextUsage | None): whose context the engine holds, and what its parts
            take; only while that is watched, twice a second at most.
        ledger_changed(int): what is stored of a conversation's context was changed by the engine's thread.
        summary_progress(int, SummaryProgress | None): a conversation, and how far the summary is that is
            written in it because the user asks for it, or waits for it; None when that has ended.
        reading_cost_told(int, ContextChange, int): a conversation, a change of its context that was asked
            about, and the tokens that would have to be read for it.
        rebuild_announced(int, int): a conversation is about to be read again in idle time, so many tokens,
            because its positions run out.
        rebuild_progress(int, PrefillProgress): conversation id, and how far it is read again on request.
        document_progress(int, ReadAheadProgress): a conversation, and how far the documents of its next
            message are read before that is sent.
        speed_changed(ReadingSpeed): how fast the loaded model reads and writes, as far as that is known now.
        background_changed(str): a few words on what is done between replies; empty when nothing is.
        guard_acted(GuardAction): memory was short and something was done, or taken back.
        failed(Failure): a request failed; the engine goes on.
    """

    load_progress = Signal(object)
    load_refused = Signal(object, object)
    kv_refused = Signal(object)
    reply_started = Signal(object)
    prefill_progress = Signal(int, object)
    reply_finished = Signal(object)
    reply_unsaved = Signal(object)
    reply_refused = Signal(int, int, object)
    kv_changed = Signal(int, object)
    pages_changed = Signal(int, object)
    context_usage_changed = Signal(int, object)
    ledger_changed = Signal(int)
    summary_progress = Signal(int, object)
    reading_cost_told = Signal(int, object, int)
    rebuild_announced = Signal(int, int)
    rebuild_progress = Signal(int, object)
    document_progress = Signal(int, object)
    speed_changed = Signal(object)
    background_changed = Signal(str)
    guard_acted = Signal(object)
    failed = Signal(object)

    def relay(self, source: EngineSignals) -> None:
        """Tell in this object's thread what `source` tells."""
        for name, signal in vars(EngineSignals).items():
            if isinstance(signal, Signal):
                getattr(source, name).connect(getattr(self, name))
