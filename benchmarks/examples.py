"""The programs in examples/: how long each takes here, and its picture, for their pages of the site.

    python -m benchmarks.examples                      # run all, in folders of their own, and print the times
    python -m benchmarks.examples --write              # and store times and output, and the pictures for the site
    python -m benchmarks.examples --write mnist vae    # only these; the others keep theirs

Those written for PyTorch need the libraries that their first lines name; `python -m tritensor run` runs them.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.compare import RESULTS, commit, load, machine

ROOT = Path(__file__).parents[1]
STORED, PICTURES = RESULTS / "examples.json", ROOT / "docs" / "pictures" / "examples"
WIDTH, LARGEST = 640, 60_000  # pixels, and bytes of a file
OUTPUT = 16  # lines that are kept

_RUN = "-m tritensor run examples/{}.py --picture picture.png"
_ALONE = "examples/{}.py --picture picture.png"
#: what follows `python` in the command of an example, and the picture that it writes
EXAMPLES = {
    "train_digits": ("examples/{}.py", "digits.png"),
    "mnist": ("examples/{}.py", "mnist.png"),
    "vae": ("examples/{}.py", "vae/samples.png"),
    "dcgan": ("examples/{}.py", "dcgan/epoch-12.png"),
    "resnet": ("examples/{}.py", "resnet18.png"),
    "language_model": (_ALONE, "picture.png"),
    "lstm_language_model": (_ALONE, "picture.png"),
    "translation": (_ALONE, "picture.png"),
    "text_classifier": (_ALONE, "picture.png"),
    "sklearn_pipeline": (_ALONE, "picture.png"),
    "sklearn_on_device": (_ALONE, "picture.png"),
    "train_digits_distributed": (f"-m tritensor launch -n 2 {_ALONE}", "picture.png"),
    "train_llama": (
        "-m tritensor cluster --nodes 1,2,8,32 --chart picture.png examples/{}.py --size 1B",
        "picture.png",
    ),
    "lora_llama": (_RUN, "picture.png"),
    "diffusion_digits": (_RUN, "picture.png"),
    "timm_classifier": (_RUN, "picture.png"),
    "lightning_digits": (_RUN, "picture.png"),
}


def runnable() -> set[str]:
    """The names of the examples that are programs."""
    found = (ROOT / "examples").glob("*.py")
    return {path.stem for path in found if "\nif __name__ ==" in path.read_text(encoding="utf-8")}


def run(name: str, folder: Path) -> dict[str, Any]:
    """Run an example in a folder; its times, where they were taken, and the last lines that it printed."""
    command = EXAMPLES[name][0].format(name)
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in command.split()]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITENSOR_")}
    busy, before, start = load(), resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"python {command} failed:\n{done.stderr[-3000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "command": f"python {command}",
        "seconds": round(seconds, 1),
        "processor_seconds": round(used, 1),
        "load": busy,
        "machine": machine(),
        "date": str(datetime.date.today()),
        "commit": commit(),
        "printed": done.stdout.rstrip().splitlines()[-OUTPUT:],
    }


def shrunk(picture: Path) -> bytes:
    """A picture as a PNG file of the site: 640 pixels wide, with as many colours as fit."""
    image: Image.Image = Image.open(picture)
    if "A" in image.getbands():
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    size = WIDTH, round(image.height * WIDTH / image.width)
    small = image.width < WIDTH  # enlarged, its pixels stay squares
    image = image.convert("RGB").resize(size, Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS)
    for colours in (256, 128, 64, 32, 16, 8):
        out = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        if out.tell() <= LARGEST:
            break
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXAMPLES)}; all unless given")
    parser.add_argument("--write", action="store_true", help="store what was found")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for name in options.names or EXAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            found = run(name, Path(folder))
            picture = shrunk(Path(folder) / EXAMPLES[name][1])
        print(f"{name}: {found['seconds']} s, {found['processor_seconds']} of processors; {len(picture) / 1e3:.0f} kB")
        if options.write:
            stored[name] = found
            PICTURES.mkdir(parents=True, exist_ok=True)
            (PICTURES / f"{name}.png").write_bytes(picture)
            kept = {each: stored[each] for each in EXAMPLES if each in stored}
            STORED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
