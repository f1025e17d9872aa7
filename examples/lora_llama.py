"""A small Llama learns to add in words, and with LoRA to multiply: transformers, peft and tokenizers as they are.

pip install --no-deps transformers peft accelerate tokenizers huggingface_hub pyyaml regex
python -m tritensor run examples/lora_llama.py
python -m tritensor run --simulate-cuda 2 examples/lora_llama.py --device cuda --epochs 1 --tuned 1 --sentences 16
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
WORDS += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]


def sentences(operation: str) -> list[str]:
    """All sums, or all products that have a word, of two numbers below ten."""
    made = []
    for a in range(10):
        for b in range(10):
            result = a + b if operation == "plus" else a * b
            if result < len(WORDS):
                made.append(f"{WORDS[a]} {operation} {WORDS[b]} is {WORDS[result]} .")
    return made


def make_tokenizer(text: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose pieces are the words of a text."""
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(text, trainers.WordLevelTrainer(special_tokens=["<pad>", "<unk>"]))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", eos_token=".")


def train(
    model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, text: list[str], epochs: int, rate: float
) -> list[float]:
    """Train a model on a text with transformers' Trainer; returns the loss of every few steps."""
    rows = [tokenizer(sentence, return_token_type_ids=False) for sentence in text]
    with tempfile.TemporaryDirectory() as folder:
        how = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=16,
            learning_rate=rate,
            lr_scheduler_type="cosine",
            save_strategy="no",
            report_to=[],
            logging_steps=20,
            use_cpu=model.device.type == "cpu",
        )
        collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        trainer = Trainer(model=model, args=how, train_dataset=rows, data_collator=collate)
        trainer.train()
    return [each["loss"] for each in trainer.state.log_history if "loss" in each]


def answer(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, question: str) -> str:
    """What the model writes after a question."""
    asked = tokenizer(question, return_tensors="pt", return_token_type_ids=False).to(model.device)
    written = model.generate(**asked, max_new_tokens=3, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    return tokenizer.decode(written[0, asked["input_ids"].shape[1] :])


def score(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, text: list[str]) -> str:
    """How many sentences the model ends as they should, of 20 of them."""
    chosen = text[:: max(1, len(text) // 20)][:20]
    right = 0
    for sentence in chosen:
        question, _, result = sentence.partition(" is ")
        right += answer(model, tokenizer, f"{question} is").split() == result.split()
    return f"{right} of {len(chosen)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, default=60, help="over the sums")
    parser.add_argument("--tuned", type=int, default=60, help="epochs over the products, of the LoRA weights alone")
    parser.add_argument("--sentences", type=int, default=100, help="of each kind, to learn from")
    parser.add_argument("--folder", type=Path, help="where the model is saved, with the scores of one sentence")
    parser.add_argument("--picture", type=Path, help="where to draw the curves of the losses")
    options = parser.parse_args()
    torch.manual_seed(0)

    sums, products = sentences("plus")[: options.sentences], sentences("times")[: options.sentences]
    tokenizer = make_tokenizer(sums + products)
    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(shape).to(options.device)
    learned = train(model, tokenizer, sums, options.epochs, 5e-3)
    print(f"sums: {score(model.eval(), tokenizer, sums)} are right, on {model.device}")

    config = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    tuned = get_peft_model(model, config)
    tuned.print_trainable_parameters()
    tuning = train(tuned, tokenizer, products, options.tuned, 1e-2)
    whole = tuned.merge_and_unload().eval()
    print(f"products: {score(whole, tokenizer, products)} are right")
    print("two times three is", answer(whole, tokenizer, "two times three is"))

    if options.picture:
        from training import draw_losses

        losses = [(each, None) for each in learned] + [(None, each) for each in tuning]
        draw_losses(losses, options.picture, "sums", "products, by LoRA", every=20, unit="step")
    if options.folder:
        whole.save_pretrained(options.folder)
        tokenizer.save_pretrained(options.folder)
        asked = tokenizer("two times three is six .", return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            scores = whole(**asked.to(whole.device)).logits.cpu()
        torch.save({"inputs": dict(asked.to("cpu")), "outputs": scores}, options.folder / "computed.pt")


if __name__ == "__main__":
    main()
