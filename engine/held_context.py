"""One version of a conversation as it is held: its cache, and what the tokens in it are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.kv.cache import SequenceCache
from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt
from engine.text_spans import between, joined, shifted


class HeldContext:
    """A cache and the spans of its tokens, which change together.

    Tokens behind those that are named are those of the answer that is being written. Where an error breaks a
    change, cache and spans may disagree, and the whole is to be forgotten.

    Args:
        cache: what was read.
        spans: what its tokens are, in order and without overlap.
    """

    def __init__(self, cache: SequenceCache, spans: tuple[TextSpan, ...] = ()) -> None:
        self.cache = cache
        self._spans = spans
        self._num_named = cache.num_tokens
        self._answer_key = ""

    @property
    def spans(self) -> tuple[TextSpan, ...]:
        """What the tokens are that are held now, in order and without overlap."""
        num_held = self.cache.num_tokens
        spans = list(between(self._spans, 0, num_held))
        if num_held > self._num_named:
            start, marker_tokens = self._num_named, 0
            if spans and self._is_answer(spans[-1]):
                marker = spans.pop()
                start, marker_tokens = marker.start, marker.marker_tokens
            spans.append(TextSpan(SpanKind.ASSISTANT, "", start, num_held, self._answer_key, marker_tokens))
        return tuple(spans)

    @property
    def held(self) -> Prompt:
        """The tokens that are held now, and what they are."""
        return Prompt(self.cache.tokens, self.spans)

    def read_is(self, prompt: Prompt, answer_key: str) -> None:
        """Name what is held and what will be read next, all of one prompt, and the answer to it.

        What is held must be a beginning of the prompt, or all of it and a beginning of the answer.
        """
        self._spans, self._num_named, self._answer_key = prompt.spans, len(prompt.tokens), answer_key

    def drop(self, start: int, stop: int) -> None:
        """Forget the tokens from `start` to `stop`; later ones stay at their positions.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._name_all()
        self.cache.drop(start, stop)
        self._take_out(start, stop)

    def detach(self, start: int, stop: int) -> tuple[tuple[TextSpan, ...], SequenceCache]:
        """Take the tokens from `start` to `stop` out; return what they are, counted from 0, and themselves.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._name_all()
        spans = tuple(shifted(between(self._spans, start, stop), -start))
        piece = self.cache.detach(start, stop)
        self._take_out(start, stop)
        return spans, piece

    def attach(self, at: int, piece: SequenceCache, spans: Sequence[TextSpan]) -> None:
        """Put tokens that were detached back, unread, before the token at index `at`.

        Args:
            at: an index among the tokens that are held.
            piece: what was detached; its positions must be free there.
            spans: what its tokens are, counted from 0.
        """
        self._name_all()
        num_before = self.cache.num_tokens
        self.cache.attach(at, piece)
        self._put_in(at, self.cache.num_tokens - num_before, spans)

    def end_splice(self, at: int, head: SequenceCache, spans: Sequence[TextSpan]) -> None:
        """Put what was read into a head of `SequenceCache.begin_splice` before the token at index `at`.

        Args:
            at: as it was given to `begin_splice`.
            head: is used up.
            spans: what the new tokens are, counted from 0.
        """
        self._name_all()
        num_before = self.cache.num_tokens
        self.cache.end_splice(at, head)
        self._put_in(at, self.cache.num_tokens - num_before, spans)

    def truncate(self, length: int) -> None:
        """Forget all tokens from `length` on, and all of them where a layer can only forget everything."""
        self._name_all()
        if not self.cache.truncate(length):
            self.cache.clear()
        self._spans = tuple(between(self._spans, 0, self.cache.num_tokens))
        self._num_named = self.cache.num_tokens

    def rewind(self, wanted: Prompt) -> None:
        """Forget all tokens, so that a prompt is read from the first position on.

        What is pinned by hand stays so where the prompt has it.
        """
        self._name_all()
        starts = {(span.kind, span.key): span.start for span in reversed(wanted.spans)}
        places = {
            index: index + starts[span.kind, span.key] - span.start
            for span in self._spans
            if (span.kind, span.key) in starts
            for index in range(span.start, span.stop)
        }
        self.cache.rewind(places.get)
        self._spans, self._num_named = (), 0

    def pin(self, keys: Collection[str]) -> bool:
        """Let pages with text of these keys, and of no others, be a tier higher; return whether that is new.

        It may be text that is yet to be read. Pages that are pinned by hand stay so.
        """
        self._name_all()
        return self.cache.pin_text((span.start, span.stop) for span in self._spans if span.key in keys)

    def fork(self, *, is_aside: bool = False) -> HeldContext:
        """Return a context of its own that shares all pages; see `SequenceCache.fork` for an aside.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._name_all()
        other = HeldContext(self.cache.fork(is_aside=is_aside), self._spans)
        other._num_named, other._answer_key = self._num_named, self._answer_key
        return other

    def close(self) -> None:
        """Give all memory back; the context cannot be used after that."""
        self.cache.close()

    def _is_answer(self, span: TextSpan) -> bool:
        """Whether a span is of the answer that is being written: its marker, or its beginning."""
        is_last = span.stop == self._num_named and span.kind is SpanKind.ASSISTANT
        return is_last and not span.title and span.key in ("", self._answer_key)

    def _name_all(self) -> None:
        """Name what is held of the answer as well."""
        if self.cache.num_tokens > self._num_named:
            self._spans, self._num_named = self.spans, self.cache.num_tokens

    def _take_out(self, start: int, stop: int) -> None:
        before = between(self._spans, 0, start)
        behind = shifted(between(self._spans, stop, self._num_named), start - stop)
        self._spans = (*before, *behind)
        self._num_named -= stop - start

    def _put_in(self, at: int, num_added: int, spans: Sequence[TextSpan]) -> None:
        before = between(self._spans, 0, at)
        behind = between(self._spans, at, self._num_named)
        self._spans = tuple(joined([*before, *shifted(spans, at), *shifted(behind, num_added)]))
        self._num_named += num_added
