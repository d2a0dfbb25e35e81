"""The rows of the Context panel: what the ledger says, what is held, and what was counted."""

from __future__ import annotations

import pytest

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.ledger.records import ItemMark, LedgerRows
from app.ledger.report import SYSTEM_KEY, ledger_report
from app.store.records import Message
from engine.context_usage import ContextUsage, ReleasedSpan, SpanUsage
from engine.kv.page_map import SpanKind
from tests.app.ledger.paths import BATS, OWLS, answer, question, reading, rows, summary, turns

COUNTS = {f"m{number}": 10 * number for number in range(1, 20)} | {"a7": 500, "a8": 600, SYSTEM_KEY: 5}


def held(
    *spans: tuple[str, int, float], released: tuple[str, ...] = (), next_position: int = 0
) -> ContextUsage:
    """Return what an engine holds: of each key so many tokens with so much heat, at 1,000 bytes a token."""
    kinds = {"": SpanKind.SYSTEM, "a": SpanKind.DOCUMENT, "s": SpanKind.SUMMARY, "m": SpanKind.USER}
    kinds |= {"p": SpanKind.NOTES, "r": SpanKind.NOTES}
    usages = tuple(
        SpanUsage(kinds[key[:1]], key, "", tokens, 1_000 * tokens, heat) for key, tokens, heat in spans
    )
    tokens = sum(usage.num_tokens for usage in usages)
    gone = tuple(ReleasedSpan(key, 30, 30_000) for key in released)
    return ContextUsage(usages, gone, tokens, 1_000 * tokens, next_position or tokens, 8_192, 1, 4_000)


def report(
    path: list[Message],
    ledger: LedgerRows | None = None,
    usage: ContextUsage | None = None,
    system_prompt: str = "",
) -> LedgerReport:
    context = ConversationContext.of(path, ledger or LedgerRows())
    tokens = 1_000 if usage is None else usage.num_tokens
    return ledger_report(
        context, system_prompt, usage, COUNTS, tokens=tokens, is_about=usage is None, limit_tokens=4_096
    )


def outline(entries: tuple[LedgerEntry, ...]) -> list[object]:
    """Return keys, each followed by the list of those below it."""
    lines: list[object] = []
    for entry in entries:
        lines.append(entry.key)
        if entry.parts:
            lines.append(outline(entry.parts))
    return lines


def by_key(whole: LedgerReport) -> dict[str, LedgerEntry]:
    return {entry.key: entry for top in whole.entries for entry in top.walk()}


def test_a_turn_is_one_row_with_its_documents_below_it() -> None:
    path = [question(1, "What do they eat?", OWLS, BATS), answer(2), question(3), answer(4)]
    whole = report(path, system_prompt="Be careful.")

    assert outline(whole.entries) == ["system", "m1", ["a7", "a8"], "m3"]
    first = by_key(whole)["m1"]
    assert (first.kind, first.number, first.title) == (EntryKind.TURN, 1, "What do they eat?")
    assert by_key(whole)["a8"].title == "Bats"


def test_summarized_turns_are_below_their_summary_which_is_called_by_their_numbers() -> None:
    path = [*turns(2), question(5, "?", OWLS), answer(6), *turns(5)[6:]]
    whole = report(path, rows(summary(3, "m3", "m4", "m5", "m6")))

    assert outline(whole.entries) == ["m1", "s3", ["m3", "m5", ["a7"]], "m7", "m9"]
    entries = by_key(whole)
    assert entries["s3"].title == "Summary of turns 2 to 3"
    assert entries["s3"].summary is not None and entries["s3"].summary.text == "Summary 3"
    assert [entries[key].state for key in ("s3", "m3", "m5", "a7")] == [
        EntryState.UNREAD,
        *[EntryState.SUMMARIZED] * 3,
    ]


def test_a_summary_of_a_document_takes_its_place_in_the_turn() -> None:
    path = [question(1, "?", OWLS, BATS), answer(2)]
    whole = report(path, rows(summary(4, "a8")))

    assert outline(whole.entries) == ["m1", ["a7", "s4", ["a8"]]]
    assert by_key(whole)["s4"].title == "Summary of Bats"


def test_tokens_bytes_and_heat_are_those_that_are_held_with_question_and_answer_together() -> None:
    usage = held(("", 40, 0.5), ("m1", 30, 0.1), ("m2", 70, 0.1), ("a7", 60, 0.3), next_position=250)
    whole = report([question(1, "?", OWLS), answer(2)], usage=usage)

    entries = by_key(whole)
    turn = entries["m1"]
    assert (turn.tokens, turn.is_about, turn.nbytes, turn.heat) == (100, False, 100_000, pytest.approx(0.2))
    # 0.2 of the attention for 100 of 200 tokens is 0.4 times the average.
    assert turn.heat_rate == pytest.approx(0.4)
    assert (entries["a7"].tokens, entries[SYSTEM_KEY].tokens) == (60, 40)
    assert (whole.tokens, whole.is_about, whole.nbytes) == (200, False, 200_000)
    assert (whole.next_position, whole.positions, whole.empty_positions) == (250, 8_192, 50)
    assert (whole.versions, whole.versions_nbytes) == (1, 4_000)
    assert dict(whole.shares) == {EntryKind.SYSTEM: 40, EntryKind.DOCUMENT: 60, EntryKind.TURN: 100}


def test_what_nothing_is_held_of_is_estimated_and_has_no_bytes_and_no_heat() -> None:
    whole = report([question(1, "?", OWLS), answer(2)], system_prompt="Be careful.")

    turn = by_key(whole)["m1"]
    assert (turn.tokens, turn.is_about, turn.nbytes, turn.heat, turn.heat_rate) == (
        30,
        True,
        None,
        None,
        None,
    )
    assert turn.state is EntryState.UNREAD
    assert (whole.tokens, whole.is_about, whole.nbytes) == (1_000, True, None)
    assert sum(tokens for _, tokens in whole.shares) + whole.around_tokens == 1_000


def test_nothing_is_made_up_where_nothing_is_counted() -> None:
    whole = report([question(90), answer(91)])

    assert by_key(whole)["m90"].tokens is None
    assert (whole.shares, whole.around_tokens) == ((), 0)


def test_without_a_model_not_even_a_summary_has_tokens() -> None:
    context = ConversationContext.of(turns(3), rows(summary(3, "m1", "m2")))
    whole = ledger_report(context, "", None, {})
    assert {entry.tokens for top in whole.entries for entry in top.walk()} == {None}
    assert by_key(whole)["s3"].state is by_key(whole)["m3"].state is EntryState.UNREAD
    assert (whole.tokens, whole.shares) == (None, ())


def test_before_the_first_sample_there_is_no_heat() -> None:
    whole = report(turns(1), usage=held(("m1", 30, 0.0), ("m2", 70, 0.0)))

    assert by_key(whole)["m1"].heat is by_key(whole)["m1"].heat_rate is None


def test_what_is_to_be_read_and_is_not_held_is_not_read_yet() -> None:
    whole = report(turns(2), rows(summary(3, "m1", "m2")), held(("m3", 30, 0.1), ("m4", 70, 0.1)))

    entries = by_key(whole)
    assert (entries["s3"].state, entries["m3"].state) == (EntryState.UNREAD, EntryState.IN_CONTEXT)
    assert (entries["s3"].tokens, entries["s3"].is_about) == (10, True)
    assert dict(whole.shares) == {EntryKind.TURN: 100, EntryKind.SUMMARY: 10}


def test_what_was_restored_and_is_on_disk_waits_for_the_next_message_with_the_tokens_that_it_had() -> None:
    whole = report(turns(2), usage=held(("m3", 10, 0.1), ("m4", 10, 0.1), released=("m1", "m2")))

    first = by_key(whole)["m1"]
    assert (first.state, first.is_on_disk) == (EntryState.UNREAD, True)
    assert (first.tokens, first.is_about) == (60, False)


def test_what_left_is_on_disk_only_where_all_of_it_is() -> None:
    usage = held(("m5", 10, 0.1), released=("m1", "m2", "m3"))
    whole = report(turns(3), rows(dropped=("m1", "m2", "m3", "m4")), usage)

    first, second = by_key(whole)["m1"], by_key(whole)["m3"]
    assert (first.state, first.is_on_disk, first.tokens, first.is_about) == (
        EntryState.LEFT_OUT,
        True,
        60,
        False,
    )
    assert (second.is_on_disk, second.tokens, second.is_about) == (False, 70, True)
    assert first.nbytes is None


def test_what_can_be_done_follows_from_what_is_read() -> None:
    path = [question(1, "?", OWLS), answer(2), *turns(5)[2:8], question(9)]
    whole = report(path, rows(summary(3, "m3", "m4"), dropped=("m5", "m6"), pinned=("m7", "m8")))

    def doable(key: str) -> str:
        entry = by_key(whole)[key]
        able = (entry.can_pin, entry.can_drop, entry.can_summarize, entry.can_restore)
        return "".join(letter for letter, can in zip("pdsr", able, strict=True) if can)

    assert doable("m1") == doable("a7") == doable("m7") == "pds"
    assert doable("s3") == "dr"
    assert doable("m3") == doable("m5") == "r"
    assert doable("m9") == "p"  # it waits for its answer
    assert by_key(whole)["m7"].is_pinned and not by_key(whole)["m1"].is_pinned


def test_a_system_prompt_that_the_template_brings_along_has_a_row() -> None:
    usage = ContextUsage(
        (SpanUsage(SpanKind.SYSTEM, "", "The model's own", 20, 9, 0.1),), (), 20, 9, 20, 8_192
    )
    whole = report([], usage=usage)

    assert [(entry.kind, entry.title, entry.tokens) for entry in whole.entries] == [
        (EntryKind.SYSTEM, "The model's own", 20)
    ]
    assert report([]).entries == ()


def test_a_document_that_is_not_read_whole_tells_its_way_and_takes_what_its_line_takes() -> None:
    path = [question(1, "Look.", OWLS), answer(2), question(3), answer(4)]
    marks = {"a7": ItemMark("a7", way=DocumentWay.SEGMENTS)}
    notes = reading(5, 1)
    owls = by_key(report(path, LedgerRows(marks, (), (notes,)), held(("p7", 20, 0.0), ("m1", 10, 0.0))))["a7"]
    assert (owls.way, owls.tokens, owls.can_summarize, owls.can_drop) == (
        DocumentWay.LOOK_UP,
        20,
        False,
        True,
    )
    unread = by_key(report(path, LedgerRows(marks)))["a7"]
    assert unread.way is DocumentWay.SEGMENTS
    left = by_key(report(path, LedgerRows(marks, (summary(1, "m1", "m2"),), (notes,))))["a7"]
    assert (left.way, left.state) == (DocumentWay.LOOK_UP, EntryState.SUMMARIZED)
    assert left.can_drop and left.can_restore
    whole = by_key(report(path))["a7"]
    assert (whole.way, whole.can_summarize) == (None, True)


def test_the_tokens_of_what_was_read_for_a_question_count_to_its_turn() -> None:
    path = [question(1, "Look.", OWLS), answer(2)]
    ledger = LedgerRows({"a7": ItemMark("a7", way=DocumentWay.SEGMENTS)}, (), (reading(5, 1),))
    usage = held(("p7", 20, 0.0), ("r5", 300, 0.5), ("m1", 10, 0.0), ("m2", 7, 0.0))
    turn = by_key(report(path, ledger, usage))["m1"]
    assert (turn.tokens, turn.nbytes) == (317, 317_000)
