"""Figures for reports under test."""

from __future__ import annotations

from engine.bench.prefix.figures import (
    DecodeWhileWriting,
    FirstToken,
    Kept,
    Loaded,
    LoadedPromptCache,
    PrefixBench,
    PromptCacheFigures,
    SavedPromptCache,
    Start,
)

MB = 1_000_000

COLD = FirstToken(6040, 0, 75.0, 78.0)
AHEAD = FirstToken(6040, 6018, 1.0, 80.0)
KEPT = Kept(
    conversation_id=1,
    leaf_id=2,
    first=FirstToken(6040, 0, 76.0, 80.0),
    num_tokens=6056,
    open_tokens=168,
    nbytes=100 * MB,
    pages_nbytes=92 * MB,
    stored_nbytes=93 * MB,
    disk_nbytes=104 * MB,
    save_s=0.8,
)
NEXT = tuple(FirstToken(6080, 6050, seconds, 3.0 + seconds) for seconds in (0.9, 0.5, 0.6))
NEW = tuple(FirstToken(6042, 5888, seconds, 5.0, "Pages are whole.") for seconds in (2.5, 2.0, 3.0))
LOADED = tuple(
    Loaded(FirstToken(6080, 6050, 0.3, 3.5), 101 * MB, seconds) for seconds in (0.202, 0.404, 0.505)
)
DECODE = DecodeWhileWriting((8.0, 8.2, 7.9), (7.8, 8.1, 7.6), 400 * MB, 2.0)
PROMPT_CACHES = (
    PromptCacheFigures(SavedPromptCache(16, 6040, 280 * MB, 281 * MB, 0.3), LoadedPromptCache(0.5, 0.9, 3.2)),
    PromptCacheFigures(SavedPromptCache(4, 6040, 44 * MB, 44 * MB, 0.1), LoadedPromptCache(0.1, 2.1, 5.2)),
)
RESULT = PrefixBench(
    num_tokens=6000,
    setup="CPU",
    versions="mlx 1",
    kv="8",
    from_disk=True,
    cold=COLD,
    ahead=AHEAD,
    kept=KEPT,
    restarts={Start.CONVERSATION: NEXT, Start.DOCUMENT: NEW},
    loaded=LOADED,
    decode=DECODE,
    prompt_caches=PROMPT_CACHES,
)
