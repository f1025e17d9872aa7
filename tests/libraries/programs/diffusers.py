"""diffusers: noise schedules, small networks that take noise away, pipelines of a few steps, and a step of learning."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import diffusers
import numpy as np
import torch
import transformers
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def spread(model: Any, by: float = 0.05) -> Any:
    """The model in evaluation mode with weights that differ visibly from their first values."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.from_numpy(np.asarray(rng.standard_normal(tuple(each.shape), dtype=np.float32) * by)))
    return model.eval()


@contextmanager
def numbered_noise(*places: str) -> Iterator[None]:
    """Noise that does not depend on who draws it: each tensor drawn in these modules has the next seed."""
    drawn = []

    def draw(shape: tuple[int, ...], *_: Any, **more: Any) -> torch.Tensor:
        drawn.append(shape)
        return noise(*shape, seed=len(drawn)).to(more.get("dtype") or torch.float32)

    with ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch.object(import_module(place), "randn_tensor", draw, create=True))
        yield


def unet(**more: Any) -> Any:
    parts = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    sizes = {
        "sample_size": 8,
        "in_channels": 3,
        "out_channels": 3,
        "layers_per_block": 1,
        "block_out_channels": (16, 32),
    }
    return diffusers.UNet2DModel(**{**sizes, **parts, "norm_num_groups": 4, "attention_head_dim": 8, **more})


def conditional(**more: Any) -> Any:
    return diffusers.UNet2DConditionModel(
        **{
            "sample_size": 8,
            "in_channels": 4,
            "out_channels": 4,
            "layers_per_block": 1,
            "block_out_channels": (16, 32),
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
            "cross_attention_dim": 16,
            "attention_head_dim": 4,
            "norm_num_groups": 4,
            **more,
        }
    )


def autoencoder() -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        latent_channels=4,
        sample_size=16,
    )


def learn(carry: Any, model: Any, wanted: torch.Tensor, *inputs: Any, **more: Any) -> None:
    """What the model makes, the loss and the gradients."""
    model = carry.module("model", spread(model))
    out = model(*inputs, **more).sample
    loss = torch.nn.functional.mse_loss(out, wanted)
    loss.backward()
    carry.check("out", out, rtol=5e-3, atol=1e-3)
    carry.check("loss", loss)
    norms = torch.stack([each.grad.norm() for each in model.parameters() if each.grad is not None])
    carry.check("norms", norms, rtol=1e-2, atol=1e-3 * float(norms.max()))


def case_unet(carry: Any) -> None:
    learn(carry, unet(), noise(2, 3, 8, 8, seed=1), noise(2, 3, 8, 8), torch.tensor([3, 70]))


def case_unet_of_classes(carry: Any) -> None:
    model = unet(
        num_class_embeds=4, resnet_time_scale_shift="scale_shift", time_embedding_type="fourier", act_fn="gelu"
    )
    learn(carry, model, noise(2, 3, 8, 8, seed=1), noise(2, 3, 8, 8), torch.tensor([0.3, 0.7]), torch.tensor([1, 3]))


def case_unet_of_resnets(carry: Any) -> None:
    model = unet(downsample_type="resnet", upsample_type="resnet", add_attention=False)
    learn(carry, model, noise(2, 3, 8, 8, seed=1), noise(2, 3, 8, 8), 5)


def case_unet_of_words(carry: Any) -> None:
    learn(carry, conditional(), noise(2, 4, 8, 8, seed=1), noise(2, 4, 8, 8), torch.tensor([3, 70]), noise(2, 5, 16))


def case_transformer(carry: Any) -> None:
    sizes = {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4, "num_layers": 2, "sample_size": 8}
    model = diffusers.DiTTransformer2DModel(**sizes, patch_size=2, norm_num_groups=4, num_embeds_ada_norm=10)
    steps = {"timestep": torch.tensor([3, 70]), "class_labels": torch.tensor([1, 3])}
    learn(carry, model, noise(2, 4, 8, 8, seed=1), noise(2, 4, 8, 8), **steps)


def case_autoencoder(carry: Any) -> None:
    learn(carry, autoencoder(), noise(2, 3, 16, 16, seed=1), noise(2, 3, 16, 16))
    model = carry.module("again", autoencoder())
    found = model.encode(noise(1, 3, 16, 16)).latent_dist
    carry.check("mean", found.mean, atol=1e-3)
    carry.check("divergence", found.kl(), atol=1e-2)
    model.enable_slicing()
    carry.check("decoded", model.decode(found.mode()).sample, atol=1e-3)


def case_vector_quantized(carry: Any) -> None:
    model = diffusers.VQModel(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        num_vq_embeddings=16,
    )
    learn(carry, model, noise(2, 3, 16, 16, seed=1), noise(2, 3, 16, 16))


def walked(carry: Any, kinds: dict[str, dict[str, Any]]) -> None:
    """Each scheduler's steps from the same start, with a rule in the place of a network."""
    for name, settings in kinds.items():
        scheduler = getattr(diffusers, name)(**settings)
        scheduler.set_timesteps(5)
        x = noise(1, 3, 4, 4) * float(scheduler.init_noise_sigma)
        with numbered_noise(type(scheduler).__module__):
            for step in scheduler.timesteps:
                scaled = scheduler.scale_model_input(x, step)
                x = scheduler.step(torch.sin(scaled) * 0.5, step, x).prev_sample
        carry.check(f"{name}.steps", scheduler.timesteps, rtol=1e-4)
        carry.check(f"{name}.x", x, rtol=5e-3, atol=1e-3)


def case_schedulers(carry: Any) -> None:
    walked(
        carry,
        {
            "DDPMScheduler": {"beta_schedule": "squaredcos_cap_v2"},
            "DDIMScheduler": {"clip_sample": False},
            "PNDMScheduler": {"skip_prk_steps": True},
            "EulerDiscreteScheduler": {"use_karras_sigmas": True},
            "EulerAncestralDiscreteScheduler": {"prediction_type": "v_prediction"},
            "HeunDiscreteScheduler": {},
        },
    )


def case_schedulers_of_more_orders(carry: Any) -> None:
    walked(
        carry,
        {
            "DPMSolverMultistepScheduler": {"algorithm_type": "dpmsolver++", "solver_order": 2},
            "DPMSolverSinglestepScheduler": {},
            "UniPCMultistepScheduler": {},
            "DEISMultistepScheduler": {},
            "LMSDiscreteScheduler": {},
            "KDPM2DiscreteScheduler": {},
        },
    )


def case_noise_added(carry: Any) -> None:
    x, other, steps = noise(3, 3, 4, 4), noise(3, 3, 4, 4, seed=1), torch.tensor([0, 400, 999])
    for kind in ("linear", "scaled_linear", "squaredcos_cap_v2"):
        scheduler = diffusers.DDPMScheduler(beta_schedule=kind)
        carry.check(kind, scheduler.add_noise(x, other, steps))
        carry.check(f"{kind}.velocity", scheduler.get_velocity(x, other, steps))


def case_flow(carry: Any) -> None:
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0)
    scheduler.set_timesteps(4)
    x = noise(1, 4, 8, 8)
    for step in scheduler.timesteps:
        x = scheduler.step(torch.sin(x), step, x).prev_sample
    carry.check("x", x)
    carry.check("sigmas", scheduler.sigmas)


def case_pipeline_ddpm(carry: Any) -> None:
    model = carry.module("model", spread(unet(), 0.02))
    pipe = diffusers.DDPMPipeline(unet=model, scheduler=diffusers.DDPMScheduler())
    pipe.set_progress_bar_config(disable=True)
    with numbered_noise("diffusers.pipelines.ddpm.pipeline_ddpm", "diffusers.schedulers.scheduling_ddpm"):
        images = pipe(batch_size=2, num_inference_steps=2, output_type="np").images
    carry.check("images", images, atol=1e-3)
    drawn = pipe(generator=torch.Generator().manual_seed(0), num_inference_steps=2, output_type="pil").images
    carry.check("size", drawn[0].size)


def case_pipeline_ddim(carry: Any) -> None:
    model = carry.module("model", spread(unet(), 0.02))
    pipe = diffusers.DDIMPipeline(unet=model, scheduler=diffusers.DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)
    with numbered_noise("diffusers.pipelines.ddim.pipeline_ddim"):
        images = pipe(batch_size=1, num_inference_steps=3, eta=0.0, output_type="np").images
    carry.check("images", images, atol=1e-3)


def case_pipeline_of_words(carry: Any) -> None:
    words = transformers.CLIPTextConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=32
    )
    parts = {"unet": conditional(), "vae": autoencoder(), "text_encoder": transformers.CLIPTextModel(words)}
    parts = {name: carry.module(name, spread(each, 0.02)) for name, each in parts.items()}
    none = {"tokenizer": None, "safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
    pipe = diffusers.StableDiffusionPipeline(**parts, scheduler=diffusers.DDIMScheduler(), **none)
    pipe.set_progress_bar_config(disable=True)
    with torch.no_grad():
        wanted, unwanted = (parts["text_encoder"](torch.arange(first, first + 5)[None])[0] for first in (3, 9))
    given = {"prompt_embeds": wanted, "negative_prompt_embeds": unwanted, "latents": noise(1, 4, 8, 8)}
    images = pipe(**given, num_inference_steps=2, guidance_scale=3.0, height=16, width=16, output_type="np").images
    carry.check("images", images, atol=2e-3)


def case_learned(carry: Any) -> None:
    model = carry.module("model", spread(unet())).train()
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rates = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=4)
    average = EMAModel(model.parameters(), decay=0.9)
    x, other, steps = noise(4, 3, 8, 8), noise(4, 3, 8, 8, seed=1), torch.tensor([1, 30, 60, 99])
    for step in range(3):
        found = model(scheduler.add_noise(x, other, steps), steps, return_dict=False)[0]
        loss = torch.nn.functional.mse_loss(found, other)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
        average.step(model.parameters())
        carry.check(f"loss.{step}", loss, rtol=1e-2)
    average.copy_to(model.parameters())
    carry.check("average", model.conv_in.weight, atol=2e-3)


def case_gradient_checkpointing(carry: Any) -> None:
    model = unet()
    model.enable_gradient_checkpointing()
    model = carry.module("model", spread(model)).train()
    model(noise(2, 3, 8, 8), 5).sample.square().mean().backward()
    carry.check("gradient", model.conv_in.weight.grad, rtol=5e-3, atol=1e-3)


def case_saved(carry: Any) -> None:
    model = carry.module("model", spread(unet()))
    pipe = diffusers.DDPMPipeline(unet=model, scheduler=diffusers.DDPMScheduler(beta_end=0.03))
    with tempfile.TemporaryDirectory() as folder:
        pipe.save_pretrained(folder)
        carry.check("files", sorted(str(each.relative_to(folder)) for each in Path(folder).glob("*/*")))
        again = diffusers.DDPMPipeline.from_pretrained(folder)
        alone = diffusers.UNet2DModel.from_pretrained(folder, subfolder="unet", torch_dtype=torch.bfloat16)
    carry.check("end", again.scheduler.betas[-1])
    carry.check("out", again.unet(noise(1, 3, 8, 8), 5).sample, rtol=5e-3, atol=1e-3)
    carry.check("kind", str(alone.dtype).split(".")[-1])
