from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.figures import KVBytes, Phase
from tests.ui.inspector.memory.samples import BUSY, IDLE, MB, at, story
from ui.inspector.memory.parts import Part, parts_of
from ui.inspector.memory.scale import axis_text, byte_scale
from ui.inspector.memory.series import PHASES, MemorySeries


def series(*samples) -> MemorySeries:  # noqa: ANN002
    made = MemorySeries()
    for sample in samples:
        made.append(sample)
    return made


def test_the_stack_adds_up_to_the_bytes_of_the_process() -> None:
    for sample in (*story(300).recent, IDLE, BUSY):
        assert sum(parts_of(sample)) == sample.process_nbytes


def test_each_part_is_what_its_name_says() -> None:
    assert dict(zip(Part, parts_of(BUSY), strict=True)) == {
        Part.WEIGHTS: 1_000 * MB,
        Part.COLD: 400 * MB,
        Part.WARM: 200 * MB,
        Part.HOT: 100 * MB,
        Part.OPEN: 50 * MB,
        Part.IDLE: 600 * MB,
        Part.CACHE: 150 * MB,
        Part.REST: 500 * MB,
    }


def test_where_the_system_counts_less_than_is_held_nothing_is_left_over() -> None:
    parts = parts_of(dataclasses.replace(BUSY, process_nbytes=1 * MB))
    assert parts[-1] == 0
    assert sum(parts) == 2_500 * MB


def test_columns_add_up_to_the_bytes_of_the_process() -> None:
    history = story(600)
    columns = series(*history.recent).columns(600, 600.0)
    totals = columns.parts.sum(axis=0)
    shown = {columns.column_of(sample.time_s): sample.process_nbytes for sample in history.recent}
    for column, nbytes in shown.items():
        if column >= 0:
            assert totals[column] == pytest.approx(nbytes)


def test_of_several_samples_in_a_column_the_highest_is_shown() -> None:
    spike = 9_000 * MB
    moments = [
        at(IDLE, 1_000 + second, process_nbytes=spike if second == 31 else 400 * MB) for second in range(120)
    ]
    columns = series(*moments).columns(12, 120.0)
    totals = columns.parts.sum(axis=0)
    assert totals[columns.column_of(1_031)] == spike
    assert (totals[np.arange(12) != columns.column_of(1_031)] == 400 * MB).all()


def test_between_samples_the_stack_is_straight() -> None:
    columns = series(at(IDLE, 100.0, process_nbytes=100), at(IDLE, 104.0, process_nbytes=500)).columns(
        10, 10.0
    )
    assert columns.parts.sum(axis=0)[columns.known].tolist() == [100, 200, 300, 400, 500]


def test_nothing_is_known_before_the_first_sample_nor_while_the_computer_slept() -> None:
    columns = series(at(IDLE, 1_000), at(IDLE, 1_010), at(IDLE, 1_050), at(IDLE, 1_060)).columns(100, 100.0)
    known = set(np.flatnonzero(columns.known))
    inside = {columns.column_of(time) for time in (*range(1_000, 1_011), *range(1_050, 1_061))}
    assert known == inside


def test_a_sample_stays_in_its_column_of_time_as_the_picture_moves() -> None:
    moments = list(story(600).recent)
    before = series(*moments[:590]).columns(200, 300.0)
    after = series(*moments).columns(200, 300.0)
    moved = after.first - before.first
    assert moved > 0
    assert np.allclose(after.parts[:, : 200 - moved - 1], before.parts[:, moved:-1])


def test_a_phase_lasts_until_the_next_sample() -> None:
    reading = dataclasses.replace(IDLE.engine, phase=Phase.PREFILL)
    columns = series(at(IDLE, 0.0), at(IDLE, 4.0, engine=reading), at(IDLE, 8.0)).columns(10, 10.0)
    names = [PHASES[code] for code in columns.phases[columns.known]]
    assert names == [Phase.IDLE] * 4 + [Phase.PREFILL] * 4 + [Phase.IDLE]


def test_the_newest_hour_is_kept_when_more_samples_come_than_have_room() -> None:
    made = MemorySeries()
    for number in range(20_000):
        made.append(at(IDLE, number * 0.5, process_nbytes=number))
    columns = made.columns(3_600, 3_600.0)
    totals = columns.parts.sum(axis=0)
    assert columns.known.all()
    assert totals[-1] == 19_999
    assert totals[0] == pytest.approx(19_999 - 2 * 3_599)
    assert made.samples[made.index_at(5_000.2)].time_s == 5_000.0


def test_the_nearest_sample_is_read() -> None:
    made = series(at(IDLE, 10.0), at(IDLE, 20.0), at(IDLE, 30.0))
    times = (0, 14.9, 15.1, 24.0, 99.0)
    assert [made.samples[made.index_at(time)].time_s for time in times] == [10, 10, 20, 20, 30]


def test_the_axis_holds_the_peak_and_a_limit_that_is_near() -> None:
    for peak in (0.0, 1e6, 333e6, 3.3e9, 47e9, 512e9):
        scale = byte_scale(peak, float("inf"))
        assert scale.top > peak
        assert 1 <= len(scale.ticks) <= 5
        assert all(0 < tick <= scale.top for tick in scale.ticks)
    assert byte_scale(3e9, 4e9).top > 4e9
    assert byte_scale(3e9, 16e9).top < 5e9


def test_numbers_of_the_axis_are_short() -> None:
    assert [axis_text(nbytes) for nbytes in (500e6, 2e9, 2.5e9)] == ["500 MB", "2 GB", "2.5 GB"]


def test_parts_of_the_cache_are_all_of_it() -> None:
    kv = KVBytes(1, 2, 4, 8, 16)
    sample = dataclasses.replace(IDLE, engine=dataclasses.replace(IDLE.engine, kv=kv))
    parts = dict(zip(Part, parts_of(sample), strict=True))
    assert sum(parts[part] for part in (Part.HOT, Part.WARM, Part.COLD, Part.OPEN, Part.IDLE)) == kv.total
