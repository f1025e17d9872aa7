"""A vision transformer of timm learns to read digits: a program written for PyTorch, as its users write them.

pip install --no-deps timm huggingface_hub pyyaml
python -m tritensor run examples/timm_classifier.py
python -m tritensor run --simulate-cuda 2 examples/timm_classifier.py --device cuda:1 --epochs 2 --pictures 64
"""

from __future__ import annotations

import argparse
from pathlib import Path

import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from sklearn.datasets import load_digits
from timm.models.vision_transformer import VisionTransformer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pictures", type=int, default=1500, help="to learn from; the others are read in the end")
    parser.add_argument("--folder", type=Path, help="where the model is saved, with what it computes of one picture")
    parser.add_argument("--picture", type=Path, help="where to draw the curve of the losses")
    options = parser.parse_args()
    torch.manual_seed(0)

    digits = load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    labels = torch.tensor(digits.target)
    learned = torch.utils.data.TensorDataset(pictures[: options.pictures], labels[: options.pictures])
    loader = torch.utils.data.DataLoader(learned, batch_size=64, shuffle=True)

    model = VisionTransformer(
        img_size=8, patch_size=2, in_chans=1, num_classes=10, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2
    ).to(options.device)
    average = timm.utils.ModelEmaV3(model, decay=0.95)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-2, weight_decay=0.02)
    rates = timm.scheduler.CosineLRScheduler(optimizer, t_initial=options.epochs, warmup_t=1, warmup_lr_init=2e-3)
    loss_of = timm.loss.LabelSmoothingCrossEntropy(0.1)

    losses = []
    for epoch in range(options.epochs):
        rates.step(epoch)
        total = timm.utils.AverageMeter()
        for inputs, targets in loader:
            inputs, targets = inputs.to(options.device), targets.to(options.device)
            loss = loss_of(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
            optimizer.step()
            average.update(model)
            total.update(loss.item(), len(inputs))
        losses.append(total.avg)
        print(f"epoch {epoch + 1}: loss {total.avg:.3f}, learning rate {optimizer.param_groups[0]['lr']:.4f}")

    average.eval()
    read = slice(1500, 1500 + min(options.pictures, 297))
    with torch.no_grad():
        scores = average(pictures[read].to(options.device)).cpu()
    (right,) = timm.utils.accuracy(scores, labels[read])
    print(f"{right:.1f} % of {len(scores)} other digits are read, on {options.device}")
    if options.picture:
        from training import draw_losses

        draw_losses(losses, options.picture, unit="epoch")
    if options.folder:
        torch.save(average.module.state_dict(), options.folder / "model.pt")
        torch.save({"inputs": {"x": pictures[read][:1]}, "outputs": scores[:1]}, options.folder / "computed.pt")


if __name__ == "__main__":
    main()
