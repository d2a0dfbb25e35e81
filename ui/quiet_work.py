"""What the engine's thread does when nothing is asked of it, as long as something is due."""

from __future__ import annotations

from engine.cancel import CancelToken
from ui.context_work import ContextWork
from ui.document_work import DocumentWork
from ui.prefix_work import PrefixWork
from ui.request_queue import Priority, RequestQueue
from ui.speed_work import SpeedWork


class QuietWork:
    """Has what is open loaded, what was read saved, and what the next message needs made ready.

    How fast the model is comes first, as documents are offered by it; then the documents beside the message,
    which somebody waits for, and last the conversation before it.

    It is one request in the background at a time, which whatever else is asked for cancels.
    """

    def __init__(
        self,
        requests: RequestQueue,
        prefixes: PrefixWork,
        speeds: SpeedWork,
        documents: DocumentWork,
        context: ContextWork,
    ) -> None:
        self._requests = requests
        self._prefixes = prefixes
        self._speeds = speeds
        self._documents = documents
        self._context = context
        self._is_asked = False

    @property
    def due_in_s(self) -> float | None:
        """Seconds until something is to be asked for; None where nothing is, or it has been asked for."""
        return None if self._is_asked else self._prefixes.due_in_s

    def ask_when_due(self) -> None:
        """Have done what is due, once nothing else waits."""
        works = (self._prefixes, self._speeds, self._documents, self._context)
        if not self._is_asked and any(work.is_due for work in works):
            self._is_asked = True
            self._requests.put(Priority.BACKGROUND, self._work, is_stoppable=False)

    def ended(self) -> None:
        """Take note that what was asked for has ended, or was cancelled before it began."""
        self._is_asked = False

    def _work(self, cancel: CancelToken) -> None:
        self._prefixes.work(cancel)
        if self._speeds.is_due:
            self._speeds.measure(cancel)
        if self._documents.is_due:
            self._prefixes.used()
            self._documents.read(cancel)
        if self._context.is_due:
            self._prefixes.used()
            self._context.make_ready(cancel)
