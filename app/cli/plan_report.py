"""The lines, the JSON object and the CSV file of `octavo plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from app.kv_config import LEAST_CONTEXT
from app.memory_plan import ASKED, EXACT, MemoryPlan, PrecisionPlan
from engine.backend import Device
from engine.budget import (
    FLOAT32_NBYTES,
    activation_nbytes,
    bare_nbytes,
    kv_numbers_per_token,
    kv_once_nbytes,
    layer_shapes,
    weights_nbytes,
)
from engine.kv.precision import LayerShape
from engine.model_info import ModelInfo
from engine.wording import format_nbytes, format_parameters

_NAME_WIDTH = 18
_WIDTH = 14
_TOO_MUCH = "✗"
_PACKED = "*"
"""Marks what fits only with the weights as they are stored."""


def report(result: MemoryPlan, is_here: bool) -> str:
    """Return all lines; `is_here` says whether the memory is what can be had on this computer now."""
    lines = [_model(result.info), "", *_formula(result), *_budget(result, is_here), "", *_table(result)]
    return "\n".join([*lines, "", result.verdict])


def _model(info: ModelInfo) -> str:
    facts = (
        info.architecture,
        f"{format_parameters(info.num_parameters)} parameters",
        info.quantization,
        f"{info.num_layers:,} layers",
        f"context {info.context_tokens:,} tokens{' (assumed)' if info.is_context_assumed else ''}",
        info.format.value,
    )
    return f"{info.name}: {', '.join(facts)}"


def _formula(result: MemoryPlan) -> list[str]:
    """Return how many numbers a token keeps and which layers keep them."""
    info = result.info
    numbers = kv_numbers_per_token(info)
    lines = []
    if numbers:
        width = 8 * activation_nbytes(info, result.backend)
        lines.append(
            f"A token keeps {' + '.join(_terms(info))} = {numbers:,} numbers, in {width} bits "
            f"{bare_nbytes(numbers, width):,} bytes."
        )
    once = kv_once_nbytes(info, result.backend, info.context_tokens)
    if once:
        lines.append(
            f"{_bounded(info)} {format_nbytes(once)} in all at most, however long the text, at any precision."
        )
    if info.is_context_assumed:
        lines.append(
            "Nothing in its config says how long a text it can read; "
            f"{info.context_tokens:,} tokens are assumed."
        )
    if not info.layers.is_known:
        lines.append(
            "What the layers cache cannot be found out; each is taken for full attention at 16 bits, the "
            "most that it can take."
        )
    if activation_nbytes(info, result.backend) == FLOAT32_NBYTES:
        where = "On the CPU" if result.backend.device is Device.CPU else "With this model"
        lines.append(f"{where} “16 bits” are float32: exact numbers and scales take 4 bytes.")
    return lines


def _terms(info: ModelInfo) -> list[str]:
    """Return what a token keeps as products, one for each kind of layer."""
    shapes = Counter(shape for shape in layer_shapes(info) if shape.num_kv_heads)
    terms = [_product(count, shape) for shape, count in shapes.items()]
    kept = Counter(cache.numbers_per_token for cache in info.layers.own if cache.grows)
    return terms + [f"{count:,} caches x {numbers:,} (not in pages)" for numbers, count in kept.items()]


def _product(count: int, shape: LayerShape) -> str:
    heads = f"{count:,} layers x {shape.num_kv_heads:,} KV heads"
    if shape.key_dim == shape.value_dim:
        return f"2 x {heads} x {shape.key_dim:,}"
    return f"{heads} x ({shape.key_dim:,} + {shape.value_dim:,})"


def _bounded(info: ModelInfo) -> str:
    """Return which caches have an end, as the beginning of a sentence."""
    windows = Counter(cache.window_tokens for cache in info.layers.own if cache.window_tokens is not None)
    parts = [f"{count:,} layers see {tokens:,} tokens" for tokens, count in windows.items()]
    states = sum(cache.numbers_per_token == 0 for cache in info.layers.own)
    if states:
        parts.append(f"{states:,} layers keep a state")
    return " and ".join(parts) + ":"


def _budget(result: MemoryPlan, is_here: bool) -> list[str]:
    plan, info = result.asked.plan, result.info
    weights = format_nbytes(plan.weights_nbytes)
    on_disk = format_nbytes(info.weights_nbytes)
    is_limited = result.limits.most_nbytes is not None
    here = " that may be taken here" if is_limited else " free here"
    there = format_nbytes(plan.usable_nbytes) + (here if is_here else "")
    left = format_nbytes(plan.kv_budget_nbytes) if plan.kv_budget_nbytes else "nothing"
    return [
        f"Weights: {weights} in memory, {_form(result)} ({on_disk} on disk).{_other_form(result)}",
        f"KV cache: {there} - {weights} weights - {format_nbytes(plan.reserve_nbytes)} reserve = {left}.",
    ]


def _form(result: MemoryPlan) -> str:
    """Return how the weights are held in memory."""
    plan, info = result.asked.plan, result.info
    if result.backend.device is Device.CPU and (plan.dequantize or not info.packed_nbytes):
        return "in float32, which is fastest on the CPU"
    if plan.weights_nbytes > info.weights_nbytes and not info.packed_nbytes:
        return f"unpacked to 16 bits, since MLX does not compute in {info.quantization}"
    return "as they are stored"


def _other_form(result: MemoryPlan) -> str:
    """Return what float32 weights would leave where packed ones stay, as a further sentence."""
    tokens = result.asked.plan.unpacked_tokens
    if tokens is None:
        return ""
    nbytes = weights_nbytes(result.info, result.backend, dequantize=True)
    sentence = f" In float32, which is faster on the CPU, they take {format_nbytes(nbytes)} and leave"
    if tokens < min(LEAST_CONTEXT, result.context):
        return f"{sentence} no room."
    return f"{sentence} room for {tokens:,} tokens: with --context {tokens} they become that."


def _table(result: MemoryPlan) -> list[str]:
    precisions = result.precisions
    lines = [_line("KV cache", (_title(one) for one in precisions))]
    lines.append(_line("bytes a token", (f"{one.plan.kv_nbytes_per_token:,}" for one in precisions)))
    for tokens in result.asked.nbytes_at:
        lines.append(_line(f"{tokens:,} tokens", (_cell(one, tokens) for one in precisions)))
    lines.append(_line("tokens in theory", (f"{one.plan.theoretical_tokens:,}" for one in precisions)))
    lines.append(_line("safe context", (f"{one.plan.safe_tokens:,}" for one in precisions)))
    lines.append(_line("fitting context", (f"{one.plan.fitting_tokens:,}" for one in precisions)))
    if any(one.packed_tokens > one.plan.fitting_tokens for one in precisions):
        lines.append(_line("fitting as stored", (f"{one.packed_tokens:,}" for one in precisions)))
        lines.append(f"{_PACKED} fits with the weights as they are stored, which is slower")
    if any(one.name == ASKED for one in precisions):
        lines.append(f"{ASKED}: {result.asked.kv}")
    if any(_TOO_MUCH in line for line in lines):
        lines.append(f"{_TOO_MUCH} does not fit")
    return lines


def _line(name: str, cells: Iterable[str]) -> str:
    return (f"{name:<{_NAME_WIDTH}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)).rstrip()


def _title(precision: PrecisionPlan) -> str:
    return "16 bits" if precision.name == EXACT else precision.name


def _cell(precision: PrecisionPlan, tokens: int) -> str:
    mark = " "
    if tokens > precision.plan.fitting_tokens:
        mark = _PACKED if tokens <= precision.packed_tokens else _TOO_MUCH
    return f"{format_nbytes(precision.nbytes_at[tokens])} {mark}"


def summary(result: MemoryPlan) -> dict[str, Any]:
    """Return everything as one JSON object; sizes in bytes."""
    info, plan = result.info, result.asked.plan
    return {
        "model": {
            "name": info.name,
            "path": str(info.path),
            "format": info.format.value,
            "architecture": info.architecture,
            "quantization": info.quantization,
            "num_parameters": info.num_parameters,
            "num_layers": info.num_layers,
            "context_tokens": info.context_tokens,
            "context_assumed": info.is_context_assumed,
            "kv_numbers_per_token": kv_numbers_per_token(info),
            "layers_known": info.layers.is_known,
        },
        "device": result.backend.device.value,
        "memory_nbytes": plan.usable_nbytes,
        "weights_nbytes": plan.weights_nbytes,
        "weights_dequantized": plan.dequantize,
        "reserve_nbytes": plan.reserve_nbytes,
        "kv_budget_nbytes": plan.kv_budget_nbytes,
        "precisions": [_precision(one) for one in result.precisions],
        "asked": {"kv": str(result.asked.kv), "context_tokens": result.context},
        "fits": result.fits,
        "verdict": result.verdict,
    }


def _precision(one: PrecisionPlan) -> dict[str, Any]:
    return {
        "name": one.name,
        "kv": str(one.kv),
        "kv_nbytes_per_token": one.plan.kv_nbytes_per_token,
        "theoretical_tokens": one.plan.theoretical_tokens,
        "safe_tokens": one.plan.safe_tokens,
        "fitting_tokens": one.plan.fitting_tokens,
        "fitting_tokens_packed": one.packed_tokens,
        "contexts": [
            {"tokens": tokens, "kv_nbytes": nbytes, "fits": tokens <= one.packed_tokens}
            for tokens, nbytes in one.nbytes_at.items()
        ],
    }


def csv_rows(result: MemoryPlan) -> list[dict[str, object]]:
    """Return a row for each precision and context."""
    plans = [_precision(one) for one in result.precisions]
    shared = {"model": result.info.name, "weights_nbytes": result.asked.plan.weights_nbytes}
    return [
        shared | {key: value for key, value in plan.items() if key != "contexts"} | context
        for plan in plans
        for context in plan["contexts"]
    ]
