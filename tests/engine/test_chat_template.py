from __future__ import annotations

from pathlib import Path

import pytest

from engine.cancel import CancelToken
from engine.chat_template import render
from engine.errors import ModelError
from engine.gguf.header import read_header
from engine.gguf.tokenizer import build_tokenizer
from tests.engine.gguf.files import BYTE_LEVEL, write_gguf

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + ALTERNATING + "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}" + ALTERNATING + "{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
DEAF = (
    "{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}: {{ m.content }}\n{% endif %}{% endfor %}"
)
THINKING = (
    "{% if enable_thinking is defined and not enable_thinking %}quiet {% endif %}{{ messages[0].content }}"
)

CONVERSATION = [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello!"), ("user", "Bye")]
TWO_IN_A_ROW = [("system", "Be brief."), ("user", "Hi"), ("user", "You there?")]


def _render(path: Path, template: str | None, turns: list[tuple[str, str]], *, generates: bool = True) -> str:
    metadata = BYTE_LEVEL | {
        "tokenizer.ggml.tokens": [*BYTE_LEVEL["tokenizer.ggml.tokens"], "<s>"],
        "tokenizer.ggml.token_type": [*BYTE_LEVEL["tokenizer.ggml.token_type"], 3],
        "tokenizer.ggml.bos_token_id": 257,
    }
    if template is not None:
        metadata["tokenizer.chat_template"] = template
    else:
        metadata["tokenizer.ggml.add_bos_token"] = True
    tokenizer = build_tokenizer(read_header(write_gguf(path / "a.gguf", metadata)), CancelToken())
    messages = [{"role": role, "content": content} for role, content in turns]
    return render(tokenizer, messages, add_generation_prompt=generates)


def test_a_willing_template_gets_the_turns_as_they_are(tmp_path: Path) -> None:
    assert _render(tmp_path, CHATML, CONVERSATION) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )
    assert _render(tmp_path, LLAMA3, TWO_IN_A_ROW, generates=False) == (
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nYou there?<|eot_id|>"
    )


def test_a_refused_system_text_goes_to_the_head_of_the_first_user_turn(tmp_path: Path) -> None:
    assert _render(tmp_path, GEMMA, CONVERSATION) == (
        "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"
    )
    assert _render(tmp_path, MISTRAL, CONVERSATION) == (
        "<s>[INST] Be brief.\n\nHi [/INST]Hello!<|endoftext|>[INST] Bye [/INST]"
    )


def test_turns_in_a_row_are_merged_where_the_template_insists_on_alternation(tmp_path: Path) -> None:
    assert _render(tmp_path, MISTRAL, TWO_IN_A_ROW) == "<s>[INST] Be brief.\n\nHi\n\nYou there? [/INST]"


def test_a_system_text_that_the_template_leaves_out_is_folded_in(tmp_path: Path) -> None:
    assert _render(tmp_path, DEAF, TWO_IN_A_ROW) == "user: Be brief.\n\nHi\nuser: You there?\n"


def test_a_system_text_alone_becomes_a_user_turn(tmp_path: Path) -> None:
    assert _render(tmp_path, MISTRAL, [("system", "Be brief.")]) == "<s>[INST] Be brief. [/INST]"


def test_a_template_that_refuses_everything_is_an_error_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="refuses the conversation: Not today"):
        _render(tmp_path, "{{ raise_exception('Not today') }}", CONVERSATION)


def test_a_broken_template_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="refuses the conversation"):
        _render(tmp_path, "{% if %}", CONVERSATION)


def test_thinking_is_left_to_mlx_lm(tmp_path: Path) -> None:
    # mlx-lm turns thinking on where the tokenizer has the tokens for it, and off elsewhere.
    assert _render(tmp_path, THINKING, [("user", "Hi")]) == "quiet Hi"


def test_without_a_template_roles_are_written_out(tmp_path: Path) -> None:
    assert _render(tmp_path, None, CONVERSATION) == (
        "<s>System: Be brief.\n\nUser: Hi\n\nAssistant: Hello!\n\nUser: Bye\n\nAssistant:"
    )
