"""peft: adapters over small language models: trained, merged, switched, saved and read again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch
import transformers

PROJECTIONS = ["q_proj", "v_proj"]


def spread(model: Any, by: float = 0.1) -> Any:
    """The model in evaluation mode with no weight at zero."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.from_numpy(np.asarray(rng.standard_normal(tuple(each.shape), dtype=np.float32) * by)))
    return model.eval()


def llama() -> Any:
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads, **ends))


def gpt2() -> Any:
    sizes = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    config = transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return transformers.GPT2LMHeadModel(config)


def tokens() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(3, 64, (2, 9)))


def adapted(carry: Any, base: Any, config: Any) -> Any:
    return carry.module("model", spread(peft.get_peft_model(base, config)))


def learn(carry: Any, model: Any) -> None:
    """Which weights learn, what they learn in two steps, and the logits."""
    ids = tokens()
    carry.check("count", list(model.get_nb_trainable_parameters()))
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
    for step in range(2):
        optimizer.zero_grad()
        out = model(input_ids=ids, labels=ids)
        out.loss.backward()
        if step == 0:
            found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
            carry.check("learning", sorted(found))
            carry.check("gradients", {name: found[name] for name in sorted(found)}, rtol=5e-3, atol=1e-3)
        optimizer.step()
        carry.check(f"loss.{step}", out.loss)
        carry.check(f"logits.{step}", out.logits, rtol=1e-2, atol=5e-3)


def merged(carry: Any, model: Any) -> None:
    """The logits stay the same when the adapter is merged into the weights."""
    with torch.no_grad():
        before = model(tokens()).logits
        with model.disable_adapter():
            without = model(tokens()).logits
        whole = model.merge_and_unload()
        after = whole(tokens()).logits
    carry.check("before", before, atol=1e-3)
    carry.check("without", without, atol=1e-3)
    carry.check("after", after, atol=1e-3)
    carry.check("class", type(whole).__name__)


def saved(carry: Any, model: Any, base: Any) -> None:
    """An adapter that is written and put on a second copy of the model below it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        carry.check("files", sorted(each.name for each in Path(folder).glob("adapter*")))
        again = peft.PeftModel.from_pretrained(base, folder).eval()
        carry.check("config", peft.PeftConfig.from_pretrained(folder).peft_type)
    found, wanted = peft.get_peft_model_state_dict(again), peft.get_peft_model_state_dict(model)
    carry.check("names", sorted(found))
    carry.check("same", all(torch.equal(found[name], wanted[name]) for name in wanted))


def case_lora(carry: Any) -> None:
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=PROJECTIONS, lora_dropout=0.0, task_type="CAUSAL_LM")
    model = adapted(carry, llama(), config)
    learn(carry, model)
    saved(carry, model, llama())
    merged(carry, model)


def case_lora_of_gpt2(carry: Any) -> None:
    config = peft.LoraConfig(
        r=4, target_modules=["c_attn"], fan_in_fan_out=True, bias="lora_only", task_type="CAUSAL_LM"
    )
    model = adapted(carry, gpt2(), config)
    learn(carry, model)
    merged(carry, model)


def case_lora_everywhere(carry: Any) -> None:
    config = peft.LoraConfig(
        r=4, target_modules="all-linear", use_rslora=True, modules_to_save=["lm_head"], task_type="CAUSAL_LM"
    )
    model = adapted(carry, llama(), config)
    learn(carry, model)
    merged(carry, model)


def case_lora_of_embeddings(carry: Any) -> None:
    model = adapted(carry, llama(), peft.LoraConfig(r=4, target_modules=["embed_tokens"], task_type="CAUSAL_LM"))
    learn(carry, model)
    merged(carry, model)


def case_dora(carry: Any) -> None:
    model = adapted(carry, llama(), peft.LoraConfig(r=4, target_modules=PROJECTIONS, use_dora=True))
    learn(carry, model)
    merged(carry, model)


def case_lora_first_values(carry: Any) -> None:
    for first in (True, "gaussian", "orthogonal", "pissa"):
        base = carry.module(f"base.{first}", spread(llama()))
        with torch.no_grad():
            wanted = base(tokens()).logits
            config = peft.LoraConfig(r=4, target_modules=PROJECTIONS, init_lora_weights=first)
            found = peft.get_peft_model(base, config).eval()(tokens()).logits
        carry.check(f"{first}", found, atol=5e-3)
        carry.check(f"{first}.change", (found - wanted).abs().max(), atol=5e-3)


def case_two_adapters(carry: Any) -> None:
    model = peft.get_peft_model(llama(), peft.LoraConfig(r=4, target_modules=PROJECTIONS), adapter_name="one")
    model.add_adapter("two", peft.LoraConfig(r=2, target_modules=PROJECTIONS))
    model = carry.module("model", spread(model))
    model.add_weighted_adapter(["one", "two"], [0.7, 0.3], "both", combination_type="cat")
    for name in ("one", "two", "both"):
        model.set_adapter(name)
        carry.check(name, model(tokens()).logits, atol=1e-3)
    model.delete_adapter("one")
    carry.check("names", sorted(model.peft_config))


def case_ia3(carry: Any) -> None:
    config = peft.IA3Config(
        target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"], task_type="CAUSAL_LM"
    )
    model = adapted(carry, llama(), config)
    learn(carry, model)
    saved(carry, model, llama())
    merged(carry, model)


def case_loha(carry: Any) -> None:
    model = adapted(carry, llama(), peft.LoHaConfig(r=2, alpha=4, target_modules=PROJECTIONS))
    learn(carry, model)
    merged(carry, model)


def case_vera(carry: Any) -> None:
    model = adapted(carry, llama(), peft.VeraConfig(r=4, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    learn(carry, model)
    merged(carry, model)


def case_orthogonal(carry: Any) -> None:
    model = adapted(carry, llama(), peft.BOFTConfig(boft_block_size=4, target_modules=["q_proj"]))
    learn(carry, model)


def case_prompt(carry: Any) -> None:
    model = adapted(carry, gpt2(), peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"))
    learn(carry, model)
    saved(carry, model, gpt2())
    carry.check("written", model.generate(input_ids=tokens()[:, :4], max_new_tokens=4, do_sample=False))


def case_prefix(carry: Any) -> None:
    model = adapted(carry, gpt2(), peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"))
    learn(carry, model)
    saved(carry, model, gpt2())


def case_prompt_of_network(carry: Any) -> None:
    config = peft.PromptEncoderConfig(num_virtual_tokens=3, encoder_hidden_size=16, task_type="CAUSAL_LM")
    learn(carry, adapted(carry, gpt2(), config))


def case_of_any_module(carry: Any) -> None:
    base = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model = adapted(carry, base, peft.LoraConfig(r=2, target_modules=["0"], modules_to_save=["2"]))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 8), dtype=np.float32))
    out = model(x)
    out.square().mean().backward()
    carry.check("out", out)
    carry.check("learning", sorted(name for name, each in model.named_parameters() if each.grad is not None))
    carry.check("merged", model.merge_and_unload()(x))


def case_of_convolution(carry: Any) -> None:
    base = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1))
    model = adapted(carry, base, peft.LoraConfig(r=2, target_modules=["0", "2"]))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 6, 6), dtype=np.float32))
    carry.check("out", model(x))
    carry.check("merged", model.merge_and_unload()(x))


def case_classifier(carry: Any) -> None:
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.BertConfig(**sizes, num_attention_heads=4, max_position_embeddings=64, num_labels=3)
    base = transformers.BertForSequenceClassification(config)
    model = adapted(carry, base, peft.LoraConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS"))
    out = model(input_ids=tokens(), labels=torch.tensor([0, 2]))
    out.loss.backward()
    carry.check("loss", out.loss)
    carry.check("learning", sorted(name for name, each in model.named_parameters() if each.grad is not None))
