"""A tiny random language model and its tokenizer, made on the spot of a text: trainers take a real step without a download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import MistralConfig, MistralForCausalLM, PreTrainedTokenizerFast

WORDS = ["<pad>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>",
         "</think>"]

WINDOW = 24
"""Tokens that a layer looks back: what such a model says hangs on the last few alone, however long the prompt."""
CHAT = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] or '' }}"
    "{% for call in message['tool_calls'] or [] %}<tool_call>{{ call['function'] | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
"""A plain chat template, for consumers that do not ask for a known one."""


def make(folder: Path, texts: Iterable[str], chat_template: str, n_words: int = 8000) -> Path:
    """Write the model and a tokenizer of `n_words` pieces of `texts` into `folder`; gives it."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=n_words, special_tokens=WORDS[:3], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tokenizer.add_tokens(WORDS[3:])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<|im_end|>")
    fast.chat_template = chat_template
    fast.save_pretrained(folder)
    MistralForCausalLM(MistralConfig(
        vocab_size=len(fast), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16384, sliding_window=WINDOW, pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id)).save_pretrained(folder)
    return folder
