"""`python -m tests.libraries.fine_tuned --python P --torch T`: train examples here, load what they saved in PyTorch.

Each example is run to its end, saves its model by its library, and writes what the model computes of one input;
PyTorch's copy of the library loads the same files and must compute the same. The interpreters are those of
`python -m tests.libraries`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOADED = {
    "lora_llama": "transformers.LlamaForCausalLM.from_pretrained(folder)(**asked).logits",
    "diffusion_digits": "diffusers.UNet2DModel.from_pretrained(folder)(**asked).sample",
    "timm_classifier": "timm.models.vision_transformer.VisionTransformer(img_size=8, patch_size=2, in_chans=1,"
    " num_classes=10, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2)",
}
PROGRAM = """
import sys, {library}, torch
folder = sys.argv[1]
kept = torch.load(folder + "/computed.pt", weights_only=True)
asked = kept["inputs"]
found = {loaded}
if isinstance(found, torch.nn.Module):
    found.load_state_dict(torch.load(folder + "/model.pt", weights_only=True))
    found = found.eval()(**asked)
most = (found - kept["outputs"]).abs().max().item()
print(f"{{most / kept['outputs'].abs().max().item():.1e}}")
"""


def compared(name: str, ours: str, theirs: str, arguments: list[str]) -> float:
    """Train an example here, load it in PyTorch: the largest difference of the outputs by the largest output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"}
    with tempfile.TemporaryDirectory() as folder:
        command = [
            ours,
            "-m",
            "tritensor",
            "run",
            str(ROOT / "examples" / f"{name}.py"),
            "--folder",
            folder,
            *arguments,
        ]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        loaded = LOADED[name]
        program = PROGRAM.format(library=loaded.split(".")[0], loaded=loaded)
        read = subprocess.run(
            [theirs, "-c", program, folder], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
        )
    return float(read.stdout)


def main() -> int:
    """The command; 1 if one of the examples computes something else in PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable, help="of the environment with the libraries")
    parser.add_argument("--torch", default=sys.executable, help="of the environment with PyTorch besides")
    parser.add_argument("names", nargs="*", default=list(LOADED))
    options, more = parser.parse_known_args()
    worst = 0.0
    for name in options.names:
        found = compared(name, options.python, options.torch, more)
        print(f"{name}: outputs in PyTorch differ by {found:.1e} of the largest")
        worst = max(worst, found)
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
