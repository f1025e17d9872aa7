"""Convolutions on simulated devices: each kernel against the CPU's pieces, over layouts, strides and tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tests.needs import needs_triton
from tritensor import settings
from tritensor.kernels.matmul import launch as matmul_launch
from tritensor.kernels.window import convolution_copies, convolution_launch
from tritensor.nn import functional as F

pytestmark = needs_triton


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the launches."""
    found: list[str] = []
    for module in (matmul_launch, convolution_launch):
        launch = module.launch

        def noted(kernel: Any, *arguments: Any, launch: Any = launch, **options: Any) -> Any:
            found.append(options["name"])
            return launch(kernel, *arguments, **options)

        monkeypatch.setattr(module, "launch", noted)
    return found


def laid_out(x: Any, layout: str) -> Any:
    """The same elements in another order in memory, or with gaps, or backwards."""
    if layout == "last":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "gaps":
        wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=x.device)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


# images, groups, channels, rows, sizes, kernel, stride, padding, dilation
CASES = [
    (2, 1, 3, 5, (9, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 32, 20, (6, 9), (3, 2), (2, 1), (0, 2), (1, 2)),
    (2, 2, 16, 18, (7, 7), (2, 3), (3, 2), (2, 1), (1, 1)),
    (3, 1, 17, 33, (5, 5), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 6, 1, 2, (9, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 6, 1, 1, (9, 8), (2, 3), (1, 1), (1, 1), (2, 1)),
    (2, 1, 4, 3, (40,), (5,), (2,), (2,), (2,)),
    (1, 1, 2, 4, (4, 5, 3), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 2, 1)),
    (1, 2, 2, 2, (6, 4), (1, 1), (2, 2), (1, 0), (1, 1)),
]


def run(case: Any, layout: str, dtype: Any, transposed: bool, device: str, seed: int) -> list[Any]:
    """The result, and the gradients of all operands."""
    images, groups, channels, rows, sizes, kernel, stride, padding, dilation = case
    rng = np.random.default_rng(seed)
    w_shape = (groups * rows, channels, *kernel)
    if transposed:
        w_shape = (groups * channels, rows, *kernel)
    shapes = ((images, groups * channels, *sizes), w_shape, (groups * rows,))
    tensors = [torch.from_numpy(rng.standard_normal(shape).astype(np.float32)).to(dtype) for shape in shapes]
    x, w, b = (each.to(device) for each in tensors)
    x, w = laid_out(x, layout).detach().requires_grad_(), w.detach().requires_grad_()
    b = b.detach().requires_grad_()
    call = getattr(F, f"conv{'_transpose' * transposed}{len(sizes)}d")
    steps: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = call(x, w, b, **steps)
    y.backward(torch.from_numpy(rng.standard_normal(tuple(y.shape)).astype(np.float32)).to(dtype).to(device))
    return [y, x.grad, w.grad, b.grad]


def compared(found: list[Any], wanted: list[Any], bound: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        assert other.device.type == "cpu" or one.stride() == other.stride()
        far = bound * max(other.detach().abs().max().item(), 1.0)
        np.testing.assert_allclose(one.detach().cpu().double().numpy(), other.detach().double().numpy(), bound, far)


# a third of them, every case in some layout, in each run
VARIANTS = [
    pytest.param(number, layout, transposed, marks=[] if (number + place + transposed) % 3 == 0 else pytest.mark.slow)
    for number in range(len(CASES))
    for place, layout in enumerate(("rows", "last", "gaps"))
    for transposed in (False, True)
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("number", "layout", "transposed"), VARIANTS)
def test_kernels_give_what_the_cpu_gives(number: int, layout: str, transposed: bool) -> None:
    """Results and gradients, in tiles of 16 and in ones of the size of the problem."""
    wanted = run(CASES[number], layout, torch.float32, transposed, "cpu", number)
    for block in (16, 0) if layout == "rows" else (16,):
        with torch.cuda.simulate(devices=1), settings.block(block):
            found = run(CASES[number], layout, torch.float32, transposed, "cuda", number)
            assert found[0].stride() == wanted[0].stride()
            compared(found, wanted, 2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("number", [0, 3, 4])
def test_kernels_take_other_dtypes(number: int, dtype: Any) -> None:
    wanted = run(CASES[number], "rows", dtype, False, "cpu", number)
    with torch.cuda.simulate(devices=1):
        found = run(CASES[number], "rows", dtype, False, "cuda", number)
        compared(found, wanted, {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-12}[dtype])


def test_bias_and_activation_join_the_kernel(kernels: list[str]) -> None:
    torch.manual_seed(0)
    x, b = torch.randn(2, 6, 5, 5), torch.randn(6)
    weights = torch.randn(6, 6, 3, 3), torch.randn(6, 6, 1, 1), torch.randn(6, 1, 3, 3)
    names = ["convolution_silu", "matmul_silu", "convolution_depthwise_silu"]
    with torch.cuda.simulate(devices=1):
        for w, groups, name in zip(weights, (1, 1, 6), names, strict=True):
            for last in (False, True):
                moved = (x.to(memory_format=torch.channels_last) if last else x).cuda()
                kernels.clear()
                y = F.conv2d(moved, w.cuda(), b.cuda(), groups=groups, activation="silu")
                assert kernels == [name] and y.is_contiguous(memory_format=torch.channels_last) is last
                torch.testing.assert_close(y.cpu(), F.silu(F.conv2d(x, w, b, groups=groups)), rtol=1e-4, atol=1e-4)
        z = F.conv_transpose2d(x.cuda(), weights[0].cuda(), b.cuda(), stride=2, activation="relu")
        torch.testing.assert_close(
            z.cpu(), F.relu(F.conv_transpose2d(x, weights[0], b, stride=2)), rtol=1e-4, atol=1e-4
        )


# few channels with neighbouring taps, row-major channels that are turned, more taps than bits, lines of a phase
FORCED = [
    (2, 1, 3, 5, (9, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 2, 20, (11, 10), (5, 7), (2, 2), (2, 3), (2, 1)),
    (1, 1, 32, 20, (6, 9), (3, 2), (2, 1), (0, 2), (1, 2)),
    (1, 1, 16, 3, (40,), (34,), (1,), (5,), (1,)),
    (2, 40, 1, 1, (9, 11), (3, 5), (1, 2), (1, 1), (2, 1)),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("layout", ["rows", "last"])
@pytest.mark.parametrize("number", range(len(FORCED)))
def test_copies_for_many_results_change_no_result(number: int, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there are so many results that inputs and weights are copied first."""
    for name in ("_PACKED", "_COPIED"):
        monkeypatch.setattr(convolution_launch, name, 1)
    dtype = torch.float16 if number < 3 else torch.float32  # gradients of weights have copies of halves only
    wanted = run(FORCED[number], layout, dtype, False, "cpu", number)
    with torch.cuda.simulate(devices=1), settings.block(16):
        compared(run(FORCED[number], layout, dtype, False, "cuda", number), wanted, 4e-3 if number < 3 else 2e-5)


@pytest.mark.parametrize("layout", ["rows", "last"])
def test_large_tiles_are_finished_in_pieces(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_launch, "_PACKED", 1)
    monkeypatch.setattr(convolution_launch, "_COPIED", 1)
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 16, 15, 14), torch.randn(20, 16, 3, 3), torch.randn(20)
    with torch.cuda.simulate(devices=1):
        y = F.conv2d(laid_out(x.cuda(), layout), w.cuda(), b.cuda(), activation="silu")
        torch.testing.assert_close(y.cpu(), F.silu(F.conv2d(x, w, b)), rtol=1e-4, atol=1e-4)


def test_weights_are_packed_for_many_results_only(monkeypatch: pytest.MonkeyPatch, kernels: list[str]) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(1, 16, 8, 8), torch.randn(4, 16, 3, 3)
    copied: list[Any] = []
    copy_into = convolution_copies.copy_into

    def noted(out: Any, source: Any) -> None:
        copied.append(out.strides)
        copy_into(out, source)

    monkeypatch.setattr(convolution_copies, "copy_into", noted)
    with torch.cuda.simulate(devices=1):
        few = F.conv2d(x.cuda(), w.cuda())
        monkeypatch.setattr(convolution_launch, "_PACKED", 8)
        many = F.conv2d(x.cuda(), w.cuda())
        assert copied == [(576, 144, 1, 48, 16)]
        F.conv2d(x.cuda(), w.to(memory_format=torch.channels_last).cuda())
        assert len(copied) == 1
        torch.testing.assert_close(few.cpu(), F.conv2d(x, w), rtol=1e-4, atol=1e-4)
        assert many.tolist() == few.tolist()


def test_offsets_of_far_elements_have_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.arange(12.0).reshape(1, 2, 6), torch.ones(3, 2, 3)
    with torch.cuda.simulate(devices=1), settings.block(16):
        space = convolution_launch._space
        monkeypatch.setattr(convolution_launch, "_space", lambda *arrays: space(*arrays)._replace(wide=True))
        moved = w.cuda().requires_grad_()
        y = F.conv1d(x.cuda(), moved)
        y.sum().backward()
        deep = F.conv1d(x.cuda(), torch.ones(2, 1, 3).cuda().requires_grad_(), groups=2)
        deep.sum().backward()
        assert y.tolist() == F.conv1d(x, w).tolist()
        assert moved.grad[0].tolist() == [[6.0, 10.0, 14.0], [30.0, 34.0, 38.0]]
        assert deep.tolist() == F.conv1d(x, torch.ones(2, 1, 3), groups=2).tolist()
    far = torch.ones(1).expand(1, 3, 1 << 15, 1 << 15)._data
    assert not space(far[:, None], far[:, None], [convolution_launch.Line(1 << 15, 1, 0)] * 2).wide
    strided = np.lib.stride_tricks.as_strided(np.ones(1), (1, 1, 2, 3, 1 << 15), (0, 0, 0, 0, 1 << 16))
    assert space(strided, strided, [convolution_launch.Line(3, 1, 0), convolution_launch.Line(1 << 15, 1, 0)]).wide


@pytest.mark.thorough
def test_second_gradients_and_checked_mode() -> None:
    torch.manual_seed(0)
    shapes = (1, 2, 5), (3, 2, 3)
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        x, w = (torch.randn(*shape, dtype=torch.float64).cuda().requires_grad_() for shape in shapes)
        assert torch.autograd.gradgradcheck(lambda x, w: F.conv1d(x, w, stride=2, padding=1), (x, w))


def test_empty_batches_launch_nothing(kernels: list[str]) -> None:
    with torch.cuda.simulate(devices=1):
        w = torch.ones(4, 3, 3, 3, device="cuda", requires_grad=True)
        y = F.conv2d(torch.zeros(0, 3, 5, 5, device="cuda"), w)
        assert y.shape == (0, 4, 3, 3)
        y.sum().backward()
        assert w.grad.abs().sum().item() == 0.0
    assert "convolution" not in kernels
