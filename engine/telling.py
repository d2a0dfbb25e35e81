"""The engine's figures, taken for whoever watches from another thread."""

from __future__ import annotations

from engine import figures
from engine.backend import Backend
from engine.budget import LoadPlan, kv_nbytes_now
from engine.figures import EngineFigures, KVBytes, Phase
from engine.held import HeldSequences
from engine.kv.precision import Tier
from engine.model_info import ModelInfo


def publish_loading(plan: LoadPlan) -> None:
    """Publish that a model is being loaded, with what was planned for it."""
    figures.publish(EngineFigures(Phase.LOAD, planned_weights_nbytes=plan.weights_nbytes))


def publish_model(
    phase: Phase,
    info: ModelInfo,
    backend: Backend,
    plan: LoadPlan,
    weights_nbytes: int,
    held: HeldSequences,
) -> None:
    """Publish what a loaded model and its conversations take."""
    context = held.in_hand
    planned = (
        0 if context is None else kv_nbytes_now(info, backend, context.cache.spec, context.cache.num_tokens)
    )
    figures.publish(
        EngineFigures(
            phase=phase,
            weights_nbytes=weights_nbytes,
            kv=_kv_bytes(held),
            planned_weights_nbytes=plan.weights_nbytes,
            planned_kv_nbytes=planned,
        )
    )


def publish_nothing() -> None:
    """Publish that there is no model."""
    figures.publish(EngineFigures())


def _kv_bytes(held: HeldSequences) -> KVBytes:
    context = held.in_hand
    if context is None:
        return KVBytes(idle=held.idle_nbytes)
    tiers = context.cache.tier_nbytes()
    return KVBytes(
        hot=tiers[Tier.HOT],
        warm=tiers[Tier.WARM],
        cold=tiers[Tier.COLD],
        open=max(0, held.memory_nbytes - held.idle_nbytes - sum(tiers.values())),
        idle=held.idle_nbytes,
    )
