"""Mixed precision beside PyTorch on its CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor
from tritensor import amp, cuda
from tritensor.operators.autocasting import lists

from ..needs import needs_triton
from . import calls

pytestmark = pytest.mark.peer
ALL = {
    f"{kind}: {name}": call
    for kind in ("LOWER", "FLOAT32", "FLOAT32_ON_CPU", "PLAIN", "WIDEST_ON_CPU", "UNLISTED_ON_CPU")
    for name, call in vars(calls)[kind].items()
}
MATRIX = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [2.0, 1.5, 0.75]]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_every_function_has_pytorchs_dtype(torch: Any, half: str) -> None:
    found: dict[Any, dict[tuple[str, str], Any]] = {}
    for library in (torch, tritensor):
        results = found[library] = {}
        with library.autocast("cpu", getattr(library, half)):
            for given in (half, "float32", "float64"):
                x = library.tensor(MATRIX, dtype=getattr(library, given))
                for name, call in ALL.items():
                    if given != "float64" or not name.startswith("WIDEST"):  # these take float32 with it
                        results[name, given] = str(call(library, x).dtype).rpartition(".")[2]
    assert found[tritensor] == found[torch]


def test_the_lists_for_cuda_devices_are_those_of_pytorchs_header(torch: Any) -> None:
    import re
    from pathlib import Path

    header = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    theirs = {}
    for policy in ("LOWER_PRECISION_FP", "FP32", "FP32_SET_OPT_DTYPE", "PROMOTE"):
        entries = re.search(rf"#define AT_FORALL_{policy}\(_\)((?:.*\\\n)+.*\n)", header)
        assert entries is not None
        theirs[policy] = {name for name in re.findall(r"_\((\w+)", entries[1]) if not name.startswith("_")}
    ours = {policy: set(names) for policy, names in lists("cuda").items()}
    theirs["FP32"] |= theirs.pop("FP32_SET_OPT_DTYPE")
    names = {"LOWER_PRECISION_FP": "lower", "FP32": "float32", "PROMOTE": "widest"}
    more = {policy: ours[policy] - theirs[name] for name, policy in names.items()}
    less = {policy: theirs[name] - ours[policy] for name, policy in names.items()}
    assert more == {
        # operators for those that PyTorch has, and functions that it composes of listed operators, or does not
        "lower": {"convolution_transposed", "gru", "lstm", "rnn_relu", "rnn_tanh"},
        "float32": {"cross_entropy", "cross_entropy_with_gradient", "norm", "square"},
        "widest": {"grid_sample"},
    }
    assert {re.sub(r"\dd|conv_", "", name) for name in less["lower"]} <= {"bmm", "conv", "mm", "tbc", "transpose"}
    assert {name for name in less["float32"] if not name.startswith("upsample_")} == {"frobenius_norm", "nll_loss2d"}
    assert not less["widest"]


def train(library: Any, device: str, steps: int = 12) -> tuple[np.ndarray, dict[str, Any]]:
    """Two optimizers under one scaler, with two steps of infinite gradients and a scale that is set."""
    rng = np.random.RandomState(0)
    params = [
        library.nn.Parameter(library.tensor(rng.randn(*shape).astype("f"), device=device))
        for shape in ((3, 4), (5,), (2, 2, 2), (1,))
    ]
    optimizers = library.optim.SGD(params[:2], lr=0.1, momentum=0.9), library.optim.Adam(params[2:], lr=0.1)
    scaler = library.amp.GradScaler(device, init_scale=1024.0, growth_interval=3)
    rows = []
    for step in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = sum((param * param).sum() for param in params) * (float("inf") if step in (4, 9) else 1.0)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizers[0])
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update(64.0 if step == 7 else None)
        sums = [param.detach().cpu().numpy().sum() for param in params]
        rows.append([scaler.get_scale(), scaler._get_growth_tracker(), *sums])
    return np.array(rows), scaler.state_dict()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_a_scaler_goes_the_same_way(torch: Any, device: str) -> None:
    theirs, their_state = train(torch, "cpu")
    if device == "cpu":
        ours, state = train(tritensor, "cpu")
    else:
        with cuda.simulate(devices=1):
            ours, state = train(tritensor, "cuda")
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert state == their_state


def test_a_model_trains_alike_under_autocast(torch: Any) -> None:
    losses: dict[Any, list[float]] = {}
    rng = np.random.RandomState(1)
    weights = [rng.randn(*shape).astype("f") * 0.3 for shape in ((8, 4), (8,), (3, 8), (3,))]
    x, target = rng.randn(16, 4).astype("f"), rng.randint(0, 3, 16)
    for library in (torch, tritensor):
        nn = library.nn
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        with library.no_grad():
            for param, value in zip(model.parameters(), weights, strict=True):
                param.copy_(library.tensor(value))
        sgd = library.optim.SGD(model.parameters(), lr=0.5)
        losses[library] = []
        for _ in range(20):
            sgd.zero_grad()
            with library.autocast("cpu"):
                loss = nn.functional.cross_entropy(model(library.tensor(x)), library.tensor(target))
            loss.backward()
            sgd.step()
            losses[library].append(loss.item())
    np.testing.assert_allclose(losses[tritensor], losses[torch], rtol=2e-2)
    assert losses[tritensor][-1] < 0.8 * losses[tritensor][0]


def test_a_state_dict_of_pytorch_is_loaded(torch: Any) -> None:
    _, state = train(torch, "cpu", 5)
    scaler = amp.GradScaler("cpu")
    scaler.load_state_dict(state)
    assert scaler.state_dict() == state
