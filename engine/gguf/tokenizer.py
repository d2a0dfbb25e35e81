"""Building the tokenizer that a GGUF file describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, SPMStreamingDetokenizer, TokenizerWrapper
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from engine.cancel import CancelToken
from engine.errors import ModelError, UnsupportedModelError
from engine.gguf.header import GGUFHeader

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_PIECES_PER_CHECK = 2_000

_END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<end_of_turn>",
)
"""Control tokens that end an answer, whatever `eos_token_id` says: many files name only one of theirs."""

# How text is split before byte pairs are merged, as the tokenizer.json of the model named so does it.
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN_SPLIT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Splitting:
    """How a byte-level tokenizer splits text into words.

    Attributes:
        pattern: regular expression of a word; None for GPT-2's.
        single_digits: whether digits are split one by one first.
        normalizes: whether text is brought to Unicode's composed form.
        whole_words: whether a word that is a token is taken without merging.
        adds_bos: whether a beginning token is added where the file does not say.
    """

    pattern: str | None = None
    single_digits: bool = False
    normalizes: bool = False
    whole_words: bool = False
    adds_bos: bool = False

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """Return the steps that split text."""
        steps: list[pre_tokenizers.PreTokenizer] = []
        if self.single_digits:
            steps.append(pre_tokenizers.Digits(individual_digits=True))
        if self.pattern is not None:
            steps.append(pre_tokenizers.Split(Regex(self.pattern), behavior="isolated"))
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=self.pattern is None))
        return pre_tokenizers.Sequence(steps)


_GPT2 = Splitting()
_SINGLE_DIGITS = Splitting(single_digits=True)
_LLAMA3 = Splitting(_LLAMA3_SPLIT, whole_words=True, adds_bos=True)
_QWEN2 = Splitting(_QWEN2_SPLIT, normalizes=True)

_SPLITTINGS = {
    "gpt-2": _GPT2,
    "smollm": _SINGLE_DIGITS,
    "starcoder": _SINGLE_DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smaug-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "tekken": Splitting(_TEKKEN_SPLIT, whole_words=True, adds_bos=True),
}


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a file by id, with ggml's type of each (1 normal, 3 control, 4 user-defined, 6 byte)."""

    tokens: list[str]
    types: list[int]

    @classmethod
    def read(cls, header: GGUFHeader) -> Vocabulary:
        """Read the tokens; a text that occurs twice is kept for the first id only."""
        tokens = [str(token) for token in header.items("tokenizer.ggml.tokens")]
        if not tokens:
            raise ModelError(f"{header.path.name} is incomplete: it has no tokens.")
        types = [int(kind) for kind in header.items("tokenizer.ggml.token_type")] or [_NORMAL] * len(tokens)
        if len(types) != len(tokens):
            raise ModelError(f"{header.path.name} is damaged: its tokens and their types differ in number.")
        seen: set[str] = set()
        for token_id, token in enumerate(tokens):
            if token in seen:
                tokens[token_id] = f"<duplicate of token {token_id}>"
            seen.add(tokens[token_id])
        return cls(tokens, types)

    @property
    def ids(self) -> dict[str, int]:
        """The id of each token."""
        return {token: token_id for token_id, token in enumerate(self.tokens)}

    def added_tokens(self) -> list[AddedToken]:
        """Return the tokens that are found in text before it is split; control tokens are special."""
        return [
            AddedToken(token, special=kind != _USER_DEFINED, normalized=False)
            for token, kind in zip(self.tokens, self.types, strict=True)
            if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) and token
        ]


def build_tokenizer(header: GGUFHeader, cancel: CancelToken) -> TokenizerWrapper:
    """Return the file's tokenizer with its streaming detokenizer, end tokens and chat template.

    Raises:
        UnsupportedModelError: a kind of tokenizer or of splitting that is not supported, by name.
    """
    vocabulary = Vocabulary.read(header)
    kind = header.text("tokenizer.ggml.model")
    build = {"gpt2": _byte_level, "llama": _sentencepiece}.get(kind)
    if build is None:
        raise UnsupportedModelError(
            f"{header.path.name} has a tokenizer of the kind {kind}, which Octavo does not read from GGUF "
            "files; get the model as an MLX folder."
        )
    tokenizer, detokenizer, adds_bos = build(header, vocabulary, cancel)
    cancel.check()
    tokenizer.add_tokens(vocabulary.added_tokens())
    return _wrap(header, vocabulary, tokenizer, detokenizer, adds_bos)


Built = tuple[Tokenizer, Callable[..., Any], bool]


def _byte_level(header: GGUFHeader, vocabulary: Vocabulary, cancel: CancelToken) -> Built:
    """Byte pair encoding over bytes, as GPT-2 introduced it."""
    splitting = _splitting(header)
    merges = [_pair(str(merge)) for merge in header.items("tokenizer.ggml.merges")]
    cancel.check()
    try:
        model = models.BPE(vocabulary.ids, merges, ignore_merges=splitting.whole_words)
    except Exception as error:
        raise ModelError(
            f"{header.path.name} is damaged: its tokenizer does not fit together ({error})."
        ) from error
    tokenizer = Tokenizer(model)
    if splitting.normalizes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splitting.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, BPEStreamingDetokenizer, splitting.adds_bos


def _pair(merge: str) -> tuple[str, str]:
    """Split a merge at its space; spaces of the text itself are written as another character."""
    first, _, second = merge.partition(" ")
    return first, second


def _splitting(header: GGUFHeader) -> Splitting:
    name = header.metadata.get("tokenizer.ggml.pre")
    splitting = _SPLITTINGS.get(str(name))
    if splitting is not None:
        return splitting
    if name in (None, "default"):
        raise UnsupportedModelError(
            f"{header.path.name} does not say how its tokenizer splits text (tokenizer.ggml.pre), like files "
            "made before May 2024; get a newer file of this model."
        )
    raise UnsupportedModelError(
        f"{header.path.name} splits text in the way of {name}, which Octavo does not know; get the model as "
        "an MLX folder."
    )


def _sentencepiece(header: GGUFHeader, vocabulary: Vocabulary, cancel: CancelToken) -> Built:
    """SentencePiece's byte pairs: the best-scored piece is merged first, unknown text becomes bytes."""
    scores = [float(score) for score in header.items("tokenizer.ggml.scores")]
    if len(scores) != len(vocabulary.tokens):
        raise ModelError(f"{header.path.name} is damaged: its tokens and their scores differ in number.")
    unknown = header.integer("tokenizer.ggml.unknown_token_id", 0)
    tokenizer = Tokenizer(
        models.BPE(
            vocabulary.ids,
            _merges(vocabulary, scores, cancel),
            unk_token=vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    prefixes_space = header.metadata.get("tokenizer.ggml.add_space_prefix", True) is True
    spaces = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if prefixes_space else spaces
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefixes_space:
        steps.append(decoders.Strip(content=" ", left=1))
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer, partial(SPMStreamingDetokenizer, trim_space=prefixes_space), True


def _merges(vocabulary: Vocabulary, scores: list[float], cancel: CancelToken) -> list[tuple[str, str]]:
    """Return the pairs that make each piece, best-scored pieces first."""
    ids = vocabulary.ids
    normal = [token_id for token_id, kind in enumerate(vocabulary.types) if kind == _NORMAL]
    merges: list[tuple[str, str]] = []
    for index, token_id in enumerate(sorted(normal, key=lambda token_id: -scores[token_id])):
        if index % _PIECES_PER_CHECK == 0:
            cancel.check()
        piece = vocabulary.tokens[token_id]
        pairs = ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        known = [pair for pair in pairs if pair[0] in ids and pair[1] in ids]
        merges.extend(sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]])))
    return merges


def _wrap(
    header: GGUFHeader,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    detokenizer: Callable[..., Any],
    adds_bos: bool,
) -> TokenizerWrapper:
    special = {
        name: vocabulary.tokens[token_id]
        for name, key in (
            ("bos_token", "bos"),
            ("eos_token", "eos"),
            ("pad_token", "padding"),
            ("unk_token", "unknown"),
        )
        if (token_id := _token_id(header, vocabulary, f"tokenizer.ggml.{key}_token_id")) is not None
    }
    if header.metadata.get("tokenizer.ggml.add_bos_token", adds_bos) and "bos_token" in special:
        bos = special["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, vocabulary.ids[bos])]
        )
    template = header.metadata.get("tokenizer.chat_template")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        clean_up_tokenization_spaces=False,
        chat_template=template if isinstance(template, str) else None,
        **special,
    )
    return TokenizerWrapper(fast, detokenizer, eos_token_ids=_end_ids(header, vocabulary))


def _end_ids(header: GGUFHeader, vocabulary: Vocabulary) -> list[int]:
    """Return the ids of all tokens that end an answer."""
    ids = vocabulary.ids
    named = [
        ids[token] for token in _END_OF_TURN if token in ids and vocabulary.types[ids[token]] == _CONTROL
    ]
    keyed = [_token_id(header, vocabulary, f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom")]
    return [*named, *(token_id for token_id in keyed if token_id is not None)]


def _token_id(header: GGUFHeader, vocabulary: Vocabulary, key: str) -> int | None:
    token_id = header.metadata.get(key)
    if isinstance(token_id, int) and 0 <= token_id < len(vocabulary.tokens):
        return token_id
    return None
