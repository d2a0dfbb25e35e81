"""What a model will take in memory, before it is loaded."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass

from engine.backend import Backend
from engine.errors import ModelError
from engine.kv import room
from engine.kv.precision import KVSpec, LayerShape
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelInfo
from engine.wording import format_nbytes

FLOAT32_NBYTES = 4

MIN_CONTEXT_TOKENS = 512
"""A model that has room for less than this is not worth loading."""

_NO_LIMITS = MemoryLimits()


@dataclass(frozen=True)
class LoadPlan:
    """What loading a model takes and what it leaves.

    Attributes:
        weights_nbytes: bytes of the weights in memory.
        kv_nbytes_per_token: bytes that a token keeps in all layers once its page is cold.
        kv_nbytes: bytes of the whole KV cache with `fitting_tokens`.
        available_nbytes: memory that could be had when the plan was made.
        usable_nbytes: what may be taken of it: all, or what the user allows.
        reserve_nbytes: kept free of that.
        kv_budget_nbytes: what weights and reserve leave of it for the KV cache.
        context_tokens: positions that the model was made for.
        theoretical_tokens: tokens that the budget holds when each takes that and nothing is to spare; it may
            be more than the model was made for.
        safe_tokens: tokens that fit into a share of the budget, which leaves room for surprises.
        fitting_tokens: tokens that fit with all that the cache keeps besides, at most `context_tokens`.
        dequantize: whether the weights become float32 (on the CPU, where that is about 20x faster).
        unpacked_tokens: tokens that would fit beside float32 weights where these are wanted and packed ones
            stay, so that the context fits; None elsewhere.
    """

    weights_nbytes: int
    kv_nbytes_per_token: int
    kv_nbytes: int
    available_nbytes: int
    usable_nbytes: int
    reserve_nbytes: int
    kv_budget_nbytes: int
    context_tokens: int
    theoretical_tokens: int
    safe_tokens: int
    fitting_tokens: int
    dequantize: bool
    unpacked_tokens: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the weights and a short context fit."""
        return self.fitting_tokens >= min(MIN_CONTEXT_TOKENS, self.context_tokens)

    def require_fit(self, info: ModelInfo) -> None:
        """Raise a `ModelError` with the numbers when the model does not fit."""
        if self.fits:
            return
        is_limited = self.usable_nbytes < self.available_nbytes
        there = "may be taken. Allow more in the settings" if is_limited else "are free. Close other programs"
        raise ModelError(
            f"{info.name} needs {format_nbytes(self.weights_nbytes)} for its weights and "
            f"{format_nbytes(self.reserve_nbytes)} to work in, and {format_nbytes(self.usable_nbytes)} of "
            f"memory {there} or choose a smaller model."
        )


def activation_nbytes(info: ModelInfo, backend: Backend) -> int:
    """Return the bytes of a number that a model computes: 4 on the CPU and of float32 models, else 2."""
    return FLOAT32_NBYTES if info.is_float32 else backend.activation_nbytes


def weights_nbytes(info: ModelInfo, backend: Backend, dequantize: bool) -> int:
    """Return the bytes of the weights in memory, all in float32 or with the quantized ones packed.

    Weights that are not quantized are of the activations' type either way: float32 on the CPU.
    """
    if dequantize:
        return info.num_parameters * FLOAT32_NBYTES
    return info.packed_nbytes + info.num_plain_values * activation_nbytes(info, backend)


def kv_numbers_per_token(info: ModelInfo) -> int:
    """Return the numbers that a token keeps, however long the text is.

    With full attention in all layers that is 2 (a key and a value) x layers x KV heads x head dim. Layers
    that see a window or are recurrent keep none: what they take has an end.
    """
    paged = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in layer_shapes(info))
    return paged + sum(cache.numbers_per_token for cache in info.layers.own if cache.grows)


def bare_nbytes(num_numbers: int, bits: float) -> int:
    """Return the bytes of numbers at a bit width, without the scales that a real format adds."""
    return math.ceil(num_numbers * bits / 8)


def kv_nbytes_per_token(info: ModelInfo, backend: Backend, kv: KVSpec) -> int:
    """Return the bytes that a token keeps in all layers once its page is cold, scales and biases counted.

    "16 bits" are the activations' own type, and so are the numbers of layers that are not in pages.
    """
    paged = kv.kv_nbytes_per_token(layer_shapes(info), activation_nbytes(info, backend))
    own = sum(cache.numbers_per_token for cache in info.layers.own if cache.grows)
    return math.ceil(paged) + own * activation_nbytes(info, backend)


def kv_nbytes(info: ModelInfo, backend: Backend, kv: KVSpec, num_tokens: int) -> int:
    """Return the most bytes that the KV cache takes while a text grows to `num_tokens`."""
    paged = room.kv_nbytes(kv, num_tokens, layer_shapes(info), activation_nbytes(info, backend))
    own = sum(cache.nbytes(num_tokens, activation_nbytes(info, backend)) for cache in info.layers.own)
    return math.ceil(paged) + own


def kv_nbytes_now(info: ModelInfo, backend: Backend, kv: KVSpec, num_tokens: int) -> int:
    """Return the most bytes that the cache takes with just `num_tokens`, the open page as it is by then."""
    unfilled = room.unfilled_nbytes(kv, num_tokens, layer_shapes(info), activation_nbytes(info, backend))
    return kv_nbytes(info, backend, kv, num_tokens) - unfilled


def kv_once_nbytes(info: ModelInfo, backend: Backend, num_tokens: int) -> int:
    """Return the part of that which has an end: windows, and what recurrent layers keep."""
    bounded = (cache for cache in info.layers.own if not cache.grows)
    return sum(cache.nbytes(num_tokens, activation_nbytes(info, backend)) for cache in bounded)


def effective_bits(info: ModelInfo, backend: Backend, kv: KVSpec) -> float:
    """Return the bits that a cached number costs on average in a cold page, with scales and biases."""
    return kv.effective_bits(layer_shapes(info), activation_nbytes(info, backend))


def layer_shapes(info: ModelInfo) -> list[LayerShape]:
    """Return what each layer of a model caches in pages, in order; none there where it has no heads."""
    alike = LayerShape(info.num_kv_heads, info.head_dim, info.head_dim)
    return list(info.layers.paged) or [alike] * info.num_layers


def plan_load(
    info: ModelInfo,
    backend: Backend,
    kv: KVSpec,
    available_nbytes: int,
    dequantize: bool | None = None,
    *,
    context: int | None = None,
    limits: MemoryLimits = _NO_LIMITS,
) -> LoadPlan:
    """Plan the memory of a model at a KV precision, with `available_nbytes` free before it is loaded.

    `dequantize` tells how a model is loaded already. None chooses float32 weights where they are wanted and a
    `context` fits beside them, as far as the model has positions; without one all of these. So more memory
    never makes less fit.
    """

    def taken_nbytes(num_tokens: int) -> int:
        return kv_nbytes(info, backend, kv, num_tokens)

    def fitting(budget_nbytes: int) -> int:
        return _most_tokens(info.context_tokens, max(0, budget_nbytes), taken_nbytes)

    usable = available_nbytes if limits.most_nbytes is None else min(available_nbytes, limits.most_nbytes)
    room_nbytes = usable - limits.reserve_nbytes
    beside_float32 = room_nbytes - weights_nbytes(info, backend, dequantize=True)
    if dequantize is None:
        wanted = info.context_tokens if context is None else min(context, info.context_tokens)
        dequantize = backend.dequantizes and taken_nbytes(wanted) <= beside_float32
    stays_packed = backend.dequantizes and not dequantize and info.packed_nbytes > 0
    budget = max(0, room_nbytes - weights_nbytes(info, backend, dequantize))
    safe_nbytes = math.floor(budget * limits.safe_share)
    return LoadPlan(
        weights_nbytes=weights_nbytes(info, backend, dequantize),
        kv_nbytes_per_token=kv_nbytes_per_token(info, backend, kv),
        kv_nbytes=taken_nbytes(fitting(budget)),
        available_nbytes=available_nbytes,
        usable_nbytes=usable,
        reserve_nbytes=limits.reserve_nbytes,
        kv_budget_nbytes=budget,
        context_tokens=info.context_tokens,
        theoretical_tokens=tokens_in_theory(info, backend, kv, budget),
        safe_tokens=min(fitting(safe_nbytes), tokens_in_theory(info, backend, kv, safe_nbytes)),
        fitting_tokens=fitting(budget),
        dequantize=dequantize,
        unpacked_tokens=fitting(beside_float32) if stays_packed else None,
    )


def tokens_in_theory(info: ModelInfo, backend: Backend, kv: KVSpec, budget_nbytes: int) -> int:
    """Return the tokens that a budget holds when all are in cold pages and no memory is to spare.

    That is the budget over the bytes of a token, also where the model has fewer positions; the model's
    context where a token takes nothing.
    """
    per_token = kv_nbytes_per_token(info, backend, kv)
    most = budget_nbytes // per_token if per_token else info.context_tokens
    return _most_tokens(
        most, budget_nbytes, lambda tokens: tokens * per_token + kv_once_nbytes(info, backend, tokens)
    )


def _most_tokens(context_tokens: int, room_nbytes: int, taken_nbytes: Callable[[int], int]) -> int:
    """Return the most tokens, up to the context, that take no more than the room."""
    fitting = bisect.bisect_right(range(1, context_tokens + 1), room_nbytes, key=taken_nbytes)
    return int(fitting)
