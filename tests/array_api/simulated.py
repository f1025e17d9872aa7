"""tritensor.array_api with a simulated CUDA device as the default one, where the standard's suite is told to use it."""

from __future__ import annotations

import os

import tritensor
from tritensor.array_api import *  # noqa: F403

if os.environ.get("ARRAY_API_TESTS_MODULE") == __name__:
    tritensor.settings.simulate_cuda.value = 1
    tritensor.set_default_device("cuda")
