"""TRL's trainers take a step each on the exported rows as they are: SFT, DPO, KTO and the reward model. This TRL has no trainer
of process rewards, so those rows are held to the shape that it took: an act for each label."""

from __future__ import annotations

import json
from typing import Any

import torch
from datasets import Dataset, load_dataset
from telling import EXPORTS, WORK, tell
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

FOLDER, MODEL = EXPORTS / "datasets", WORK / "model"
N_ROWS = 4
CHAT = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] or '' }}"
    "{% for c in m['tool_calls'] or [] %}<tool_call>{{ c['function'] | tojson }}</tool_call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
torch.manual_seed(0)
torch.set_num_threads(1)


def made() -> None:
    """Make a tiny random model, with a tokenizer of the rows' own words."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [line for path in sorted(FOLDER.glob("sft.*.jsonl")) for line in path.read_text("utf-8").splitlines()][:20],
        trainers.BpeTrainer(vocab_size=4000, special_tokens=["<pad>", "<|im_start|>", "<|im_end|>"], show_progress=False,
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<|im_end|>")
    fast.chat_template = CHAT
    fast.save_pretrained(MODEL)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=len(fast), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=16384, pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id)).save_pretrained(MODEL)


def rows(form: str) -> Dataset:
    """Return the shortest rows of the form's first side that has any."""
    files = (FOLDER / f"{form}.{side}.jsonl" for side in ("train", "validation", "held_out"))
    path = next(path for path in files if path.stat().st_size)
    read = load_dataset("json", data_files=str(path), split="train", cache_dir=str(WORK / "cache"))
    short = sorted(range(read.num_rows), key=lambda place: len(json.dumps(read[place])))
    return read.select([short[place % len(short)] for place in range(N_ROWS)])


def arguments(kind: Any) -> Any:
    """Return what every trainer is told: one step on the processor, and nothing written or reported."""
    return kind(output_dir=str(WORK / "out"), max_steps=1, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                bf16=False, save_strategy="no", disable_tqdm=True, max_length=8192)


def judge() -> Any:
    """Return the model with a head that gives one number."""
    return AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=1)


made()
steps = {
    "sft": lambda read: SFTTrainer(model=str(MODEL), args=arguments(SFTConfig), train_dataset=read),
    "dpo": lambda read: DPOTrainer(model=str(MODEL), args=arguments(DPOConfig), train_dataset=read),
    "kto": lambda read: KTOTrainer(model=str(MODEL), args=arguments(KTOConfig), train_dataset=read),
    "reward_model": lambda read: RewardTrainer(
        model=judge(), args=arguments(RewardConfig), train_dataset=read,
        processing_class=AutoTokenizer.from_pretrained(MODEL)),
}
losses = {}
for form, trainer in steps.items():
    done = trainer(rows(form)).train()
    assert done.global_step == 1 and done.training_loss > 0, form
    losses[form] = round(done.training_loss, 4)
for row in rows("process_reward"):
    assert row["completions"] and len(row["completions"]) == len(row["labels"])
    assert all(isinstance(label, bool) for label in row["labels"])
tell("a step each of SFT, DPO, KTO and the reward model on a tiny random model", losses=losses)
