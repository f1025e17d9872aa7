"""transformers: language, picture and speech models with their gradients, generation, saved models, the trainer."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
PARTS = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}


def spread(model: Any, by: float = 0.1) -> Any:
    """The model in evaluation mode with weights far enough from their first values that results differ visibly."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            noise = rng.standard_normal(tuple(each.shape), dtype=np.float32) * by
            each.add_(torch.from_numpy(np.asarray(noise)).to(each.dtype))
    return model.eval()


def tokens(rows: int = 2, length: int = 9, below: int = 64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(3, below, (rows, length)))


def noise(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def check_gradients(carry: Any, model: Any) -> None:
    """The first and last gradients, and the size of each of them."""
    found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    names = list(found)
    carry.check("gradients", {name: found[name] for name in (names[0], names[-1])}, atol=1e-3)
    carry.check("norms", {name: each.norm() for name, each in found.items()}, rtol=5e-3, atol=1e-3)


def learn(carry: Any, model: Any, **inputs: Any) -> Any:
    """Forward and backward: the loss, the logits and gradients are compared."""
    model = carry.module("model", spread(model))
    out = model(**inputs)
    out.loss.backward()
    carry.check("loss", out.loss)
    carry.check("logits", out.logits, atol=1e-3)
    check_gradients(carry, model)
    return out


def causal(carry: Any, model: Any) -> None:
    """A language model: the loss and gradients, and a few tokens that it would write."""
    ids = tokens()
    learn(carry, model, input_ids=ids, labels=ids)
    with torch.no_grad():
        full = model(ids, use_cache=False).logits
        first = model(ids[:, :5], use_cache=True)
        second = model(ids[:, 5:], past_key_values=first.past_key_values, use_cache=True)
    carry.check("cached", torch.cat([first.logits, second.logits], 1) - full, atol=1e-3)
    carry.check("written", model.generate(ids[:, :4], max_new_tokens=4, do_sample=False))


def llama(**more: Any) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED, **more))


def gpt2(**more: Any) -> Any:
    sizes = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "eos_token_id": 2}
    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = transformers.GPT2Config(**{**sizes, **none, "bos_token_id": 1, "pad_token_id": 0, **more})
    return transformers.GPT2LMHeadModel(config)


def bert_config(kind: str = "BertConfig", **more: Any) -> Any:
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return getattr(transformers, kind)(**{**SIZES, **none, "num_labels": 3, **more})


def case_gpt2(carry: Any) -> None:
    causal(carry, gpt2())


def case_llama(carry: Any) -> None:
    causal(carry, llama())


def case_llama_eager(carry: Any) -> None:
    causal(carry, llama(attn_implementation="eager"))


def case_llama_flex(carry: Any) -> None:
    """Blocks of scores; without gradients, which PyTorch has none of on the CPU."""
    model = carry.module("model", spread(llama(attn_implementation="flex_attention")))
    ids, mask = tokens(length=40), torch.ones(2, 40, dtype=torch.int64)
    mask[1, :5] = 0
    eager = getattr(torch.compiler, "set_stance", contextlib.nullcontext)
    with torch.no_grad(), eager("force_eager"):
        carry.check("logits", model(ids).logits, atol=1e-3)
        carry.check("padded", model(ids, attention_mask=mask).logits[:, 5:], atol=1e-3)
        carry.check("written", model.generate(ids[:, :4], max_new_tokens=4, do_sample=False))


def case_llama_long_positions(carry: Any) -> None:
    rope = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    causal(carry, llama(rope_parameters=rope, tie_word_embeddings=True))


def case_mistral(carry: Any) -> None:
    causal(carry, transformers.MistralForCausalLM(transformers.MistralConfig(**GROUPED, sliding_window=4)))


def case_qwen2(carry: Any) -> None:
    causal(carry, transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**GROUPED)))


def case_qwen3(carry: Any) -> None:
    causal(carry, transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**GROUPED, head_dim=16)))


def case_gemma2(carry: Any) -> None:
    config = transformers.Gemma2Config(**GROUPED, head_dim=8, query_pre_attn_scalar=8, sliding_window=4)
    causal(carry, transformers.Gemma2ForCausalLM(config))


def case_phi3(carry: Any) -> None:
    causal(carry, transformers.Phi3ForCausalLM(transformers.Phi3Config(**GROUPED)))


def case_gpt_neox(carry: Any) -> None:
    causal(carry, transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES)))


def case_mixtral(carry: Any) -> None:
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "output_router_logits": True}
    causal(carry, transformers.MixtralForCausalLM(transformers.MixtralConfig(**GROUPED, **experts)))


def case_mixtral_eager(carry: Any) -> None:
    config = transformers.MixtralConfig(**GROUPED, num_local_experts=4, num_experts_per_tok=2)
    model = transformers.MixtralForCausalLM(config)
    model.set_experts_implementation("eager")
    causal(carry, model)


def case_bert(carry: Any) -> None:
    ids, mask = tokens(), torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    labels = torch.where(torch.arange(9) % 3 == 0, ids, torch.full_like(ids, -100))
    learn(carry, transformers.BertForMaskedLM(bert_config()), input_ids=ids, attention_mask=mask, labels=labels)


def case_bert_heads(carry: Any) -> None:
    ids = tokens()
    labels = {
        "BertForSequenceClassification": {"labels": torch.tensor([0, 2])},
        "BertForTokenClassification": {"labels": ids % 3},
        "BertForQuestionAnswering": {"start_positions": torch.tensor([1, 2]), "end_positions": torch.tensor([3, 4])},
    }
    for kind, wanted in labels.items():
        model = carry.module(
            kind, spread(getattr(transformers, kind)(bert_config(num_labels=2 if "Answer" in kind else 3)))
        )
        out = model(input_ids=ids, **wanted)
        out.loss.backward()
        carry.check(f"{kind}.loss", out.loss)
        carry.check(f"{kind}.gradient", model.bert.embeddings.word_embeddings.weight.grad, atol=1e-3)


def case_bert_outputs(carry: Any) -> None:
    model = transformers.BertModel(bert_config(attn_implementation="eager"))
    model = carry.module("model", spread(model))
    out = model(tokens(), output_hidden_states=True, output_attentions=True)
    carry.check("hidden", out.hidden_states, atol=1e-3)
    carry.check("attentions", out.attentions)
    carry.check("pooled", out.pooler_output)


def case_roberta(carry: Any) -> None:
    model = transformers.RobertaForMaskedLM(bert_config("RobertaConfig", pad_token_id=1))
    ids = tokens()
    ids[1, 6:] = 1
    learn(carry, model, input_ids=ids, attention_mask=(ids != 1).long(), labels=ids)


def case_distilbert(carry: Any) -> None:
    sizes = {"vocab_size": 64, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "num_labels": 3}
    config = transformers.DistilBertConfig(**sizes, max_position_embeddings=64)
    model = transformers.DistilBertForSequenceClassification(config)
    learn(carry, model, input_ids=tokens(), labels=torch.tensor([0, 2]))


def case_t5(carry: Any) -> None:
    sizes = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(**sizes, decoder_start_token_id=0, relative_attention_num_buckets=8)
    model = transformers.T5ForConditionalGeneration(config)
    ids = tokens()
    learn(carry, model, input_ids=ids, labels=ids[:, :5].contiguous())
    carry.check("written", model.generate(ids, max_new_tokens=4, do_sample=False))


def case_bart(carry: Any) -> None:
    sides = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in PARTS.items()}
    config = transformers.BartConfig(
        vocab_size=64, d_model=32, max_position_embeddings=64, **sides, forced_eos_token_id=2
    )
    model = transformers.BartForConditionalGeneration(config)
    ids = tokens()
    learn(carry, model, input_ids=ids, labels=ids[:, :5].contiguous())
    carry.check("written", model.generate(ids, max_new_tokens=4, do_sample=False, num_beams=2))


def vit_sizes() -> dict[str, Any]:
    return {**{key: SIZES[key] for key in list(SIZES)[1:5]}, "image_size": 16, "patch_size": 8}


def case_vit(carry: Any) -> None:
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**vit_sizes(), num_labels=3))
    learn(carry, model, pixel_values=noise(2, 3, 16, 16), labels=torch.tensor([0, 2]))


def case_clip(carry: Any) -> None:
    config = transformers.CLIPConfig(text_config=SIZES, vision_config=vit_sizes(), projection_dim=16)
    model = carry.module("model", spread(transformers.CLIPModel(config)))
    ids = tokens()
    ids[:, -1] = 2
    out = model(input_ids=ids, pixel_values=noise(2, 3, 16, 16), return_loss=True)
    out.loss.backward()
    carry.check("loss", out.loss)
    carry.check("logits", out.logits_per_image, atol=1e-3)
    check_gradients(carry, model)


def case_whisper(carry: Any) -> None:
    sides = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in PARTS.items()}
    places = {"max_source_positions": 20, "max_target_positions": 32, "num_mel_bins": 8}
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    none = {"suppress_tokens": None, "begin_suppress_tokens": None}
    config = transformers.WhisperConfig(vocab_size=64, d_model=32, **sides, **places, **ends, **none)
    model = transformers.WhisperForConditionalGeneration(config)
    sound = noise(2, 8, 40)
    learn(carry, model, input_features=sound, labels=tokens(length=5))
    carry.check("written", model.generate(sound, max_new_tokens=4, do_sample=False))


def case_wav2vec2(carry: Any) -> None:
    convolutions = {"conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 4), "num_feat_extract_layers": 2}
    parts = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0}
    sizes = {key: SIZES[key] for key in list(SIZES)[:5]}
    model = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(**sizes, **convolutions, **parts))
    model = carry.module("model", spread(model))
    out = model(noise(2, 160), labels=tokens(length=3))
    out.loss.backward()
    carry.check("loss", out.loss)
    carry.check("logits", out.logits, atol=1e-3)


def case_generate_sampled(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    out = model.generate(tokens()[:, :4], max_new_tokens=6, min_new_tokens=6, do_sample=True, top_k=8, top_p=0.9)
    carry.check("shape", out.shape)
    carry.check("start", out[:, :4])


def case_generate_static_cache(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    ids = tokens()[:, :4]
    out = model.generate(ids, max_new_tokens=6, do_sample=False, cache_implementation="static")
    carry.check("written", out)


def case_generate_padded_left(carry: Any) -> None:
    model = carry.module("model", spread(gpt2()))
    ids, mask = tokens(), torch.ones(2, 9, dtype=torch.long)
    ids[1, :4], mask[1, :4] = 0, 0
    out = model.generate(ids, attention_mask=mask, max_new_tokens=5, do_sample=False)
    alone = model.generate(ids[1:, 4:], max_new_tokens=5, do_sample=False)
    carry.check("written", out)
    carry.check("alone", alone)


def case_generate_beams(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    ids = tokens()[:, :4]
    out = model.generate(ids, max_new_tokens=5, num_beams=3, num_return_sequences=2, do_sample=False)
    carry.check("written", out)


def case_generate_scores(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    limits = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "bad_words_ids": [[5]], "min_new_tokens": 3}
    out = model.generate(
        tokens()[:, :4],
        max_new_tokens=5,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        **limits,
    )
    carry.check("written", out.sequences)
    carry.check("scores", out.scores, atol=1e-3)


def case_bfloat16(carry: Any) -> None:
    model = carry.module("model", spread(llama())).to(torch.bfloat16)
    ids = tokens()
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    carry.check("loss", out.loss, rtol=0.05, atol=0.05)
    carry.check("logits", out.logits, rtol=0.1, atol=0.1)
    carry.check("kind", str(model.lm_head.weight.grad.dtype).split(".")[-1])


def case_autocast(carry: Any) -> None:
    model = carry.module("model", spread(gpt2()))
    ids = tokens()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    carry.check("loss", out.loss, rtol=0.05, atol=0.05)
    carry.check("gradient", model.transformer.wpe.weight.grad.norm(), rtol=0.1, atol=0.01)


def case_gradient_checkpointing(carry: Any) -> None:
    model = llama()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model = carry.module("model", spread(model)).train()
    ids = tokens()
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    carry.check("loss", loss)
    check_gradients(carry, model)


def case_saved(carry: Any) -> None:
    model = carry.module("model", spread(gpt2()))
    ids = tokens()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        carry.check("files", sorted(each.name for each in Path(folder).iterdir()))
        again = transformers.AutoModelForCausalLM.from_pretrained(folder)
        half = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
        body = transformers.AutoModel.from_pretrained(folder)
    carry.check("logits", again(ids).logits, atol=1e-3)
    carry.check("half", half(ids).logits, rtol=0.1, atol=0.1)
    carry.check("body", body(ids).last_hidden_state, atol=1e-3)


def case_saved_in_shards(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, max_shard_size="20KB")
        carry.check("files", sorted(each.name for each in Path(folder).iterdir()))
        again = transformers.LlamaForCausalLM.from_pretrained(folder)
    carry.check("logits", again(tokens()).logits, atol=1e-3)


def case_resized_vocabulary(carry: Any) -> None:
    model = carry.module("model", spread(gpt2()))
    model.resize_token_embeddings(70, mean_resizing=False)
    out = model(tokens())
    carry.check("logits", out.logits[..., :64], atol=1e-3)
    carry.check("shape", out.logits.shape)


def case_schedules(carry: Any) -> None:
    model = carry.module("model", torch.nn.Linear(8, 4))
    x = noise(16, 8)
    for name in ("linear", "cosine", "cosine_with_restarts", "polynomial", "constant_with_warmup"):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        schedule = transformers.get_scheduler(name, optimizer, num_warmup_steps=2, num_training_steps=6)
        for _ in range(4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            schedule.step()
        carry.check(name, schedule.get_last_lr())
        carry.check(f"{name}.weight", model.weight)


def case_adafactor(carry: Any) -> None:
    model = carry.module("model", spread(llama()))
    optimizer = transformers.Adafactor(model.parameters(), lr=1e-2, relative_step=False, scale_parameter=False)
    ids = tokens()
    for step in range(3):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        carry.check(f"loss.{step}", loss, rtol=5e-3)


def trained(carry: Any, **more: Any) -> Any:
    """A few steps of the trainer over rows in their order; losses and weights are compared."""
    rows = [{"input_ids": row, "labels": row} for row in tokens(12)]
    model = carry.module("model", spread(gpt2()))
    with tempfile.TemporaryDirectory() as folder:
        settings = transformers.TrainingArguments(
            **{
                "output_dir": folder,
                "max_steps": 3,
                "per_device_train_batch_size": 2,
                "per_device_eval_batch_size": 4,
                "learning_rate": 1e-2,
                "use_cpu": True,
                "report_to": [],
                "save_strategy": "no",
                "logging_steps": 1,
                "disable_tqdm": True,
                "train_sampling_strategy": "sequential",
                "dataloader_pin_memory": False,
                **more,
            }
        )
        trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows, eval_dataset=rows[:4])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        found = trainer.evaluate()["eval_loss"]
        files = sorted(str(each.relative_to(folder)) for each in Path(folder).glob("*/*.*"))
    carry.check("losses", [each["loss"] for each in trainer.state.log_history if "loss" in each], rtol=5e-3)
    carry.check("evaluated", found, rtol=5e-3)
    carry.check("files", [each for each in files if each.endswith((".json", ".safetensors", ".bin", ".pt", ".pth"))])


def case_trainer(carry: Any) -> None:
    trained(carry)


def case_trainer_accumulates_and_saves(carry: Any) -> None:
    more = {"gradient_accumulation_steps": 2, "save_strategy": "steps", "save_steps": 2, "lr_scheduler_type": "cosine"}
    trained(carry, **more, warmup_steps=1, max_grad_norm=0.5)


def case_trainer_compiles(carry: Any) -> None:
    trained(carry, torch_compile=not carry.writes, weight_decay=0.1)


def case_compiled(carry: Any) -> None:
    model = carry.module("model", spread(gpt2()).eval())
    ids = tokens(4)
    found = carry.compiled(model)(input_ids=ids, labels=ids)
    found.loss.backward()
    carry.check("logits", found.logits, rtol=5e-3, atol=1e-3)
    carry.check("norms", torch.stack([each.grad.norm() for each in model.parameters()]), rtol=1e-2, atol=1e-3)
    with torch.no_grad():
        made = carry.compiled(model).generate(ids[:2, :5], max_new_tokens=6, do_sample=False, pad_token_id=0)
    carry.check("generated", made)


def case_replayed(carry: Any) -> None:
    """The third call on runs without Python."""
    run = carry.compiled(carry.module("model", spread(gpt2()).eval()), fullgraph=True)
    for step in range(4):
        with torch.no_grad():
            found = run(input_ids=(tokens(4) + step) % 16, use_cache=False)
        carry.check(f"logits.{step}", found.logits, rtol=5e-3, atol=1e-3)
