"""What is worth knowing of a plan to load a model, in words."""

from __future__ import annotations

from engine.budget import MIN_CONTEXT_TOKENS, LoadPlan


def planned_tokens(plan: LoadPlan, max_context: int | None) -> int:
    """Return the context that a plan which fits will have."""
    return max(1, min(plan.fitting_tokens, max_context or plan.fitting_tokens))


def remark(plan: LoadPlan, max_context: int | None) -> tuple[str, str]:
    """Return what is worth knowing of a plan that fits, and how it is coloured."""
    if plan.fitting_tokens < plan.context_tokens:
        return (
            f"Memory holds {plan.fitting_tokens:,} of the {plan.context_tokens:,} tokens that the model "
            f"was made for. A lower KV precision holds more.{_slow(plan)}",
            "warning",
        )
    if max_context is not None and max_context > plan.context_tokens:
        return (
            f"The context limit is {max_context:,} tokens, and the model was made for "
            f"{plan.context_tokens:,}.",
            "muted",
        )
    if plan.unpacked_tokens is not None:
        return _slow(plan).strip(), "warning"
    if plan.dequantize:
        return "On this processor the weights are kept in 32 bits, which makes it much faster.", "muted"
    return "", "muted"


def _slow(plan: LoadPlan) -> str:
    """Return that weights stay packed where that is slower, and what helps, as a further sentence or none."""
    if plan.unpacked_tokens is None:
        return ""
    if plan.unpacked_tokens < MIN_CONTEXT_TOKENS:
        return " The weights stay packed, as there is no room to unpack them: much slower on this processor."
    return (
        " The weights stay packed for such a long context, which is much slower on this processor. A context "
        f"limit of at most {plan.unpacked_tokens:,} tokens leaves room to unpack them."
    )
