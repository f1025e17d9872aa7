"""tritensor.array_api with a simulated CUDA device as the default one, for the runner of the standard's suite."""

from __future__ import annotations

import tritensor
from tritensor.array_api import *  # noqa: F403

tritensor.settings.simulate_cuda.value = 1
tritensor.set_default_device("cuda")
