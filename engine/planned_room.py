"""What the plan of a loaded model holds, and what would make it hold more."""

from __future__ import annotations

from collections.abc import Iterator

from engine.admission import Choice, LowerPrecision, PackedWeights
from engine.budget import kv_nbytes
from engine.headroom import precisions_below
from engine.kv.precision import KVSpec
from engine.requests import LoadedModel
from engine.wording import format_apart, format_nbytes


def limit_of_plan(loaded: LoadedModel, kv: KVSpec) -> int | None:
    """Return the memory that the user allows where the plan holds less for it, None where it does not."""
    plan = loaded.plan_at(kv)
    return loaded.limits.most_nbytes if plan.usable_nbytes < plan.available_nbytes else None


def more_room(loaded: LoadedModel, kv: KVSpec, num_tokens: int) -> Iterator[Choice]:
    """Yield how the plan comes to hold so many tokens, the milder way first; nothing where it cannot."""
    packed = loaded.packed_plan_at(kv)
    if packed is not None and packed.fitting_tokens >= num_tokens:
        yield PackedWeights(packed.fitting_tokens)
    for lower in precisions_below(kv):
        fitting = loaded.plan_at(lower).fitting_tokens
        if fitting >= num_tokens:
            yield LowerPrecision(lower, fitting)
            return


def room_words(loaded: LoadedModel, kv: KVSpec, num_tokens: int) -> str:
    """Return what so many tokens take and what is left for them, in bytes, as a sentence."""
    plan, limit = loaded.plan_at(kv), limit_of_plan(loaded, kv)
    takes, left = format_apart(kv_nbytes(loaded.info, loaded.backend, kv, num_tokens), plan.kv_budget_nbytes)
    of = "the memory that is free" if limit is None else f"the {format_nbytes(limit)} that Octavo may take"
    return (
        f"Their KV cache takes {takes}, and {left} are left for it of {of}: the weights have "
        f"{format_nbytes(plan.weights_nbytes)}, and {format_nbytes(plan.reserve_nbytes)} are kept free."
    )
