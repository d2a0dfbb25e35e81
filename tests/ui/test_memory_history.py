from __future__ import annotations

from engine.figures import EngineFigures, Phase
from engine.guard import GuardStep
from tests.ui.inspector.memory.samples import IDLE, at, event
from ui.memory_history import MemoryHistory


def test_an_hour_is_kept_whole_and_of_what_is_older_one_of_ten() -> None:
    history = MemoryHistory()
    for second in range(5_600):
        history.add(at(IDLE, float(second), process_nbytes=1_000 + second % 10))
    times = [sample.time_s for sample in history.samples()]
    assert times == sorted(times)
    newest = [time for time in times if time >= 5_599 - 3_600]
    assert newest == [float(second) for second in range(1_999, 5_600)]
    old = [sample for sample in history.samples() if sample.time_s < 1_990]
    assert [sample.time_s for sample in old] == [float(second) for second in range(9, 1_990, 10)]
    assert {sample.process_nbytes for sample in old} == {1_009}


def test_a_reply_waits_from_its_pause_until_the_pause_ends() -> None:
    history = MemoryHistory()
    assert history.pause() is None
    pause = event(10.0, GuardStep.PAUSE)
    history.events.append(pause)
    assert history.pause() is pause
    history.events.append(event(11.0, GuardStep.CLEAR_CACHE))
    assert history.pause() is pause
    history.events.append(event(12.0, GuardStep.PAUSE, is_end=True))
    assert history.pause() is None


def test_a_reply_that_was_stopped_while_it_waited_waits_no_more() -> None:
    history = MemoryHistory()
    pause = event(10.0, GuardStep.PAUSE)
    history.events.append(pause)
    for time_s, phase in ((10.5, Phase.TRIM), (11.0, Phase.PAUSED)):
        history.add(at(IDLE, time_s, engine=EngineFigures(phase=phase)))
        assert history.pause() is pause
    history.add(at(IDLE, 12.0))
    assert history.pause() is None
