from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import pytest
import regex
import sentencepiece
from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import Qwen2Tokenizer

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError, UnsupportedModelError
from engine.gguf.header import read_header
from engine.gguf.tokenizer import build_tokenizer
from tests.engine.gguf.files import BYTE_LEVEL, BYTES, write_gguf

TEXTS = [
    "The quick brown fox doesn't jump; it's 12,345.67 km away!",
    "人工智能正在改变世界。今天天气很好，我们去公园吧！",
    "اللغة العربية جميلة، والخط العربي فن قديم.",
    "👩‍👩‍👧‍👦 a family, 🏳️‍🌈 a flag, 👍🏽 a thumb and 🇨🇭",
    "def f(x):\n\tif x:\n\t\treturn {'a': [1, 2]}\n\n\n    # end\r\n",
    "0 7 42 365 1984 65536 3.14159",
    "  two spaces,   three,\ttab,\n\n\nlines   \n  ",
    "naïve café Straße Ångström ½ x² ﬁ",
]


def _tokenizer(path: Path, metadata: dict[str, Any]) -> TokenizerWrapper:
    return build_tokenizer(read_header(write_gguf(path / "a.gguf", metadata)), CancelToken())


def _streamed(tokenizer: TokenizerWrapper, ids: list[int]) -> str:
    """Decode token by token, as generation does."""
    detokenizer = tokenizer.detokenizer
    text = ""
    for token_id in ids:
        detokenizer.add_token(token_id)
        text += detokenizer.last_segment
    detokenizer.finalize()
    return text + detokenizer.last_segment


def _ids(tokenizer: TokenizerWrapper, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids


@pytest.fixture(scope="module")
def starter_tokenizer(starter_gguf: Path) -> TokenizerWrapper:
    return build_tokenizer(read_header(starter_gguf), CancelToken())


@pytest.mark.parametrize("text", TEXTS)
def test_starter_reads_and_writes_every_text_unchanged(
    starter_tokenizer: TokenizerWrapper, text: str
) -> None:
    ids = _ids(starter_tokenizer, text)

    assert starter_tokenizer.decode(ids) == text
    # mlx-lm drops one space at the very start of an answer.
    assert _streamed(starter_tokenizer, ids) == text.removeprefix(" ")


def test_starter_splits_digits_one_by_one(starter_tokenizer: TokenizerWrapper) -> None:
    assert starter_tokenizer.convert_ids_to_tokens(_ids(starter_tokenizer, "in 1984, 42x")) == [
        *("in", "Ġ", "1", "9", "8", "4", ","),
        *("Ġ", "4", "2", "x"),
    ]


def test_starter_marks_turns_with_single_tokens(starter_tokenizer: TokenizerWrapper) -> None:
    ids = _ids(starter_tokenizer, "<|im_start|>user\nhi<|im_end|>")

    assert (ids[0], ids[-1]) == (1, 2)
    assert starter_tokenizer.decode(ids, skip_special_tokens=True) == "user\nhi"
    assert {0, 2} <= starter_tokenizer.eos_token_ids
    assert "<|im_start|>" in starter_tokenizer.chat_template


def test_starter_has_the_tokens_of_a_plain_byte_pair_encoder(
    starter_tokenizer: TokenizerWrapper, starter_gguf: Path
) -> None:
    metadata = read_header(starter_gguf).metadata
    vocabulary = {token: token_id for token_id, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    ranks = {tuple(m.split(" ")): rank for rank, m in enumerate(metadata["tokenizer.ggml.merges"])}

    for text in TEXTS:
        expected = [
            vocabulary[piece]
            for part in regex.split(r"(\p{N})", text)
            for word in regex.findall(_GPT2_WORD, part)
            for piece in _merge(word, ranks)
        ]
        assert _ids(starter_tokenizer, text) == expected


_GPT2_WORD = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _merge(word: str, ranks: dict[Any, int]) -> list[str]:
    """Byte pair encoding as the paper tells it: always merge the pair that was learned first."""
    pieces = [BYTES[byte] for byte in word.encode()]
    while len(pieces) > 1:
        pairs = list(itertools.pairwise(pieces))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        at = pairs.index(best)
        pieces[at : at + 2] = ["".join(best)]
    return pieces


@pytest.fixture(scope="module")
def qwen2_pair(
    starter_gguf: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TokenizerWrapper, Qwen2Tokenizer]:
    """The starter's tokens split as Qwen2 does, as we build it and as transformers does."""
    metadata = read_header(starter_gguf).metadata
    vocabulary = {token: token_id for token_id, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(str(merge).split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    changed = {key: metadata[key] for key in metadata if key.startswith("tokenizer.ggml.")}
    ours = _tokenizer(tmp_path_factory.mktemp("qwen2"), changed | {"tokenizer.ggml.pre": "qwen2"})
    return ours, Qwen2Tokenizer(vocab=vocabulary, merges=merges)


@pytest.mark.parametrize("text", TEXTS)
def test_qwen2_has_the_tokens_of_transformers(
    qwen2_pair: tuple[TokenizerWrapper, Qwen2Tokenizer], text: str
) -> None:
    ours, theirs = qwen2_pair

    assert _ids(ours, text) == theirs.encode(text, add_special_tokens=False)


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("gpt-2", ["ab", " 12345", "!!", "\n\n", " it", "'s"]),
        ("smollm", ["ab", " ", "1", "2", "3", "4", "5", "!!", "\n\n", " it", "'s"]),
        ("llama-bpe", ["ab", " ", "123", "45", "!!\n\n", " it", "'s"]),
        ("qwen2", ["ab", " ", "1", "2", "3", "4", "5", "!!\n\n", " it", "'s"]),
        ("tekken", ["ab", " ", "1", "2", "3", "4", "5", "!!\n\n", " it", "'s"]),
    ],
)
def test_text_is_split_as_the_model_was_trained(pre: str, words: list[str], tmp_path: Path) -> None:
    tokenizer = _tokenizer(tmp_path, BYTE_LEVEL | {"tokenizer.ggml.pre": pre})

    split = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str("ab 12345!!\n\n it's")

    assert ["".join(chr(BYTES.index(c)) for c in word) for word, _ in split] == words


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2", "tekken"])
@pytest.mark.parametrize("text", TEXTS)
def test_bytes_alone_write_every_text(pre: str, text: str, tmp_path: Path) -> None:
    tokenizer = _tokenizer(tmp_path, BYTE_LEVEL | {"tokenizer.ggml.pre": pre})

    ids = _ids(tokenizer, text)

    assert bytes(ids).decode() == text
    assert tokenizer.decode(ids) == text
    assert _streamed(tokenizer, ids) == text.removeprefix(" ")


def test_a_beginning_token_is_added_where_the_file_or_the_kind_says_so(tmp_path: Path) -> None:
    base = BYTE_LEVEL | {"tokenizer.ggml.bos_token_id": 256}

    def first(**changes: Any) -> int:
        return int(_tokenizer(tmp_path, base | changes).encode("a")[0])

    assert first() == ord("a")
    assert first(**{"tokenizer.ggml.add_bos_token": True}) == 256
    assert first(**{"tokenizer.ggml.pre": "llama-bpe"}) == 256
    assert first(**{"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.add_bos_token": False}) == ord("a")


def test_every_control_token_that_ends_a_turn_ends_an_answer(tmp_path: Path) -> None:
    tokens = [*BYTES, "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<|start|>", "<stop>"]
    tokenizer = _tokenizer(
        tmp_path,
        BYTE_LEVEL
        | {
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [1] * 256 + [3, 3, 1, 3, 3],
            "tokenizer.ggml.eot_token_id": 260,
        },
    )

    # <|im_end|> is plain text here.
    assert tokenizer.eos_token_ids == {256, 257, 260}


def test_user_defined_tokens_are_found_but_not_special(tmp_path: Path) -> None:
    tokenizer = _tokenizer(
        tmp_path,
        BYTE_LEVEL
        | {
            "tokenizer.ggml.tokens": [*BYTES, "<|endoftext|>", "<tool_call>"],
            "tokenizer.ggml.token_type": [1] * 256 + [3, 4],
        },
    )

    ids = _ids(tokenizer, "a<tool_call>b<|endoftext|>")

    assert ids == [ord("a"), 257, ord("b"), 256]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<tool_call>b"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer.ggml.model": "t5"}, "of the kind t5"),
        ({"tokenizer.ggml.pre": "viking"}, "in the way of viking"),
        ({"tokenizer.ggml.pre": "default"}, "does not say how its tokenizer splits text"),
    ],
)
def test_unknown_tokenizers_are_refused_by_name(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=words):
        _tokenizer(tmp_path, BYTE_LEVEL | changes)


def test_a_tokenizer_without_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no tokens"):
        _tokenizer(tmp_path, BYTE_LEVEL | {"tokenizer.ggml.tokens": []})


def test_merges_that_do_not_fit_the_tokens_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not fit together"):
        _tokenizer(tmp_path, BYTE_LEVEL | {"tokenizer.ggml.merges": ["x yz"]})


@pytest.fixture(scope="module")
def sentences() -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece model of the kind that Llama 2 and Mistral use, trained on the texts."""
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in TEXTS * 20 for line in text.split("\n") if line),
        model_writer=trained,
        model_type="bpe",
        vocab_size=560,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        character_coverage=0.98,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())


def _sentencepiece_metadata(model: sentencepiece.SentencePieceProcessor, **changes: Any) -> dict[str, Any]:
    ids = range(model.get_piece_size())
    kinds = [
        2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1 for i in ids
    ]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [model.id_to_piece(i) for i in ids],
        "tokenizer.ggml.scores": [model.get_score(i) for i in ids],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}


@pytest.mark.parametrize("text", [*TEXTS, "unseen: Ωmega žluťoučký 한국어 𝔘"])
def test_sentencepiece_has_the_tokens_of_sentencepiece(
    sentences: sentencepiece.SentencePieceProcessor, text: str, tmp_path: Path
) -> None:
    tokenizer = _tokenizer(tmp_path, _sentencepiece_metadata(sentences))

    ids = _ids(tokenizer, text)

    assert ids == sentences.encode(text)
    assert tokenizer.encode(text) == [1, *ids]
    assert tokenizer.decode(ids) == text
    assert _streamed(tokenizer, ids) == text


@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_without_a_space_before_text_writes_it_unchanged(
    sentences: sentencepiece.SentencePieceProcessor, text: str, tmp_path: Path
) -> None:
    tokenizer = _tokenizer(tmp_path, _sentencepiece_metadata(sentences, add_space_prefix=False))

    ids = _ids(tokenizer, text)

    assert tokenizer.decode(ids) == text
    assert _streamed(tokenizer, ids) == text


def test_building_can_be_cancelled(sentences: sentencepiece.SentencePieceProcessor, tmp_path: Path) -> None:
    header = read_header(write_gguf(tmp_path / "a.gguf", _sentencepiece_metadata(sentences)))
    cancel = CancelToken()
    cancel.cancel()

    with pytest.raises(Cancelled):
        build_tokenizer(header, cancel)
