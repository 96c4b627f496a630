"""Make a tiny model with random weights and a tokenizer of its own in a folder; needs torch and transformers.

Run by the interpreter that has them: python tiny_model.py FOLDER
"""

from __future__ import annotations

import sys
from typing import Any

WORDS = "ready steady go one two three yes no maybe the a of and to in merge branch commit context message model"
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make(folder: str) -> None:
    import tokenizers  # type: ignore[import-not-found, unused-ignore]
    import torch  # type: ignore[import-not-found, unused-ignore]
    import transformers  # type: ignore[import-not-found, unused-ignore]

    byte_level: Any = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = byte_level
    made.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|end|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=512, special_tokens=special, initial_alphabet=byte_level.alphabet()
    )
    made.train_from_iterator([WORDS] * 50, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    make(sys.argv[1])
