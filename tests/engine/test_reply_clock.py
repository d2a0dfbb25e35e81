"""The speeds of a reply that had to wait for memory."""

from __future__ import annotations

import pytest

from engine.reply_clock import ReplyClock


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr("engine.reply_clock.time.perf_counter", lambda: now_s[0])
    return now_s


def test_a_pause_counts_to_the_wait_for_the_first_token_and_to_no_speed(now_s: list[float]) -> None:
    clock = ReplyClock()
    now_s[0] += 2
    with clock.paused():
        now_s[0] += 30
    clock.token()
    now_s[0] += 4
    with clock.paused():
        now_s[0] += 500
    clock.token()
    assert clock.ttft_s == 32
    assert clock.prefill_tps(100) == 50
    assert clock.decode_tps(9) == 2


def test_a_reply_that_is_stopped_before_its_first_token_has_read_at_some_speed_and_written_at_none(
    now_s: list[float],
) -> None:
    clock = ReplyClock()
    now_s[0] += 2
    with clock.paused():
        now_s[0] += 30
    assert (clock.ttft_s, clock.prefill_tps(100), clock.decode_tps(0)) == (32, 50, 0)


def test_one_token_has_no_speed(now_s: list[float]) -> None:
    clock = ReplyClock()
    clock.token()
    now_s[0] += 1
    assert clock.decode_tps(1) == 0
