"""A UNet of diffusers learns to paint digits from noise: a program written for PyTorch, as its users write them.

pip install --no-deps diffusers huggingface_hub safetensors regex
python -m tritensor run examples/diffusion_digits.py
python -m tritensor run --simulate-cuda 2 examples/diffusion_digits.py --device cuda:1 --steps 1 --paint 2
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from diffusers import DDIMScheduler, UNet2DModel
from sklearn.datasets import load_digits
from tqdm import tqdm


def paint(model: UNet2DModel, schedule: DDIMScheduler, count: int, steps: int) -> torch.Tensor:
    """Pictures made from noise in some steps."""
    pictures = torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(1)).to(model.device)
    schedule.set_timesteps(steps)
    with torch.no_grad():
        for moment in tqdm(schedule.timesteps, desc="paint"):
            noise = model(pictures, moment).sample
            pictures = schedule.step(noise, moment, pictures).prev_sample
    return pictures.clamp(-1, 1).cpu()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=300, help="of training, of 16 pictures each")
    parser.add_argument("--paint", type=int, default=20, help="steps of painting")
    parser.add_argument("--folder", type=Path, help="where the model is saved, with what it computes of one picture")
    parser.add_argument("--picture", type=Path, help="where to draw what is painted")
    options = parser.parse_args()
    torch.manual_seed(0)

    digits = load_digits(n_class=2)  # zeros and ones
    pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    model = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ).to(options.device)
    schedule = DDIMScheduler(num_train_timesteps=200, beta_schedule="squaredcos_cap_v2")
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    progress = tqdm(range(options.steps), desc="train")
    for _ in progress:
        clean = pictures[torch.randint(len(pictures), (16,))].to(options.device)
        noise = torch.randn_like(clean)
        moments = torch.randint(200, (len(clean),), device=options.device)
        noisy = schedule.add_noise(clean, noise, moments)
        loss = torch.nn.functional.mse_loss(model(noisy, moments).sample, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        progress.set_postfix(loss=f"{loss.item():.3f}")

    model.eval()
    painted = paint(model, schedule, 6, options.paint)
    distance = torch.cdist(painted.flatten(1), pictures.flatten(1)).min(1).values.mean()
    random = torch.cdist(torch.randn(6, 64).clamp(-1, 1), pictures.flatten(1)).min(1).values.mean()
    print(f"on {model.device}: {distance:.2f} from the nearest digit; noise is {random:.2f} from it")
    for row in range(8):
        print("  ".join("".join(" .:*#"[int((x + 1) * 2.49)] * 2 for x in one[0, row].tolist()) for one in painted))

    if options.picture:
        from matplotlib import image

        rows = painted.reshape(2, 3, 8, 8).transpose(1, 2).reshape(16, 24)
        image.imsave(options.picture, -rows.numpy(), cmap="gray")
    if options.folder:
        model.save_pretrained(options.folder)
        asked = {"sample": painted[:1], "timestep": torch.tensor([7])}
        with torch.no_grad():
            outputs = model(*[each.to(model.device) for each in asked.values()]).sample.cpu()
        torch.save({"inputs": asked, "outputs": outputs}, options.folder / "computed.pt")


if __name__ == "__main__":
    main()
