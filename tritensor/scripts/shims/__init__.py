"""The folder that `run` puts on the path: what `import torch` and `import torchvision` find in every process."""

from __future__ import annotations
