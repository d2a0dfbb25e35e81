from __future__ import annotations

from pathlib import Path

import pytest

from app.prefix_bench.order import Order, Outcome, Phase
from engine.errors import OctavoError


def test_an_order_and_its_outcome_cross_a_command_line() -> None:
    order = Order(Phase.LOAD_PROMPT_CACHE, Path("/models/own.gguf"), Path("/tmp/bench"), 60, bits=4)
    assert Order.from_json(order.to_json()) == order
    outcome = Outcome({"ttft_s": 0.5}, "CPU")
    assert Outcome.from_json(outcome.to_json()) == outcome


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"phase": "later", "model": "a", "folder": "b"}'])
def test_what_is_no_order_is_one_sentence(text: str) -> None:
    with pytest.raises(OctavoError, match=r"^This is no order of a bench\.$"):
        Order.from_json(text)
