"""Softmax, its logarithm and layer normalisation: special values, dimensions, long rows, refusals, gradients."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.rowwise import kernel as rowwise_kernel
from tritensor.kernels.rowwise.layer_norm import _layer_norm
from tritensor.kernels.rowwise.layer_norm import layer_norm as layer_norm_operator
from tritensor.kernels.rowwise.reference import PIECE, exponentials
from tritensor.nn import functional as F
from tritensor.operators import registry
from tritensor.types import dtypes

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["cpu", "cuda", "cuda in small blocks"])
def device(request):
    """The CPU; a simulated device with one tile for everything; one that takes rows 4 elements at a time."""
    if request.param == "cpu":
        yield "cpu"
        return
    with torch.cuda.simulate(devices=1), settings.block(0 if request.param == "cuda" else 4):
        yield "cuda"


def exact_softmax(x, dim):
    """In float64, with NaN where no share can be told."""
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(dim, keepdims=True))
        return e / e.sum(dim, keepdims=True)


SPECIAL = np.array(
    [
        [-INF] * 6,
        [INF, 1, 2, 3, 4, 5],
        [NAN, 1, 2, 3, 4, 5],
        [-INF, 0, -INF, 0, -INF, -INF],
        [-INF, -INF, -INF, -INF, 1, 2],  # a block of nothing before the rest
        [1e30, -1e30, 0, 0, 0, 0],
        [-1000, -1001, -1002, -1003, -1004, -1005],
        [80, 81, 82, 83, 84, 85],
        [0, 0, 0, 0, 0, 0],
    ],
    np.float32,
)


def test_special_values(device):
    x = torch.from_numpy(SPECIAL).to(device)
    shares = exact_softmax(SPECIAL, 1)
    np.testing.assert_allclose(x.softmax(1).cpu().numpy(), shares, rtol=1e-6, atol=1e-30)
    with np.errstate(all="ignore"):
        wide = SPECIAL.astype(np.float64)
        top = wide.max(1, keepdims=True)
        logs = wide - top - np.log(np.exp(wide - top).sum(1, keepdims=True))
    np.testing.assert_allclose(x.log_softmax(1).cpu().numpy(), logs, rtol=1e-6, atol=1e-6)
    # rows alone and together: a piece that needs its maxima taken off and one that does not
    np.testing.assert_allclose(x[3:4].softmax(1).cpu().numpy(), shares[3:4], rtol=1e-6)
    np.testing.assert_allclose(x[8:].log_softmax(1).cpu().numpy(), logs[8:], rtol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(4, 7), (3, 4, 5), (2, 3, 2, 3), (11,), (), (1, 1), (0, 3), (3, 0)], ids=str)
def test_every_dimension(name, shape, device):
    array = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    for dim in range(-len(shape), len(shape)) or (0, -1):
        found = getattr(torch.from_numpy(np.asarray(array)).to(device), name)(dim).cpu().numpy()
        assert found.shape == shape
        if array.size:
            wanted = exact_softmax(np.atleast_1d(array), dim)
            wanted = wanted if name == "softmax" else np.log(wanted)
            np.testing.assert_allclose(np.atleast_1d(found), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(2)
def test_layouts_need_no_copy(device):
    base = np.random.default_rng(4).standard_normal((6, 5, 4)).astype(np.float32)
    x = torch.from_numpy(base).to(device)
    for array, view in (
        (base.transpose(2, 0, 1), x.permute(2, 0, 1)),
        (base[::2, 1:], x[::2, 1:]),
        (np.broadcast_to(base[:, :1], base.shape), x[:, :1].expand(6, 5, 4)),
    ):
        for dim in range(3):
            np.testing.assert_allclose(view.softmax(dim).cpu().numpy(), exact_softmax(array, dim), rtol=1e-5)


def test_dtypes(device):
    x = torch.tensor([[1.0, 2.0, 3.0]], device=device)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert x.to(dtype).softmax(1).dtype is dtype
    assert F.softmax(x.half(), 1, dtype=torch.float64).dtype is torch.float64
    assert x.long().log_softmax(1, dtype=torch.float32).dtype is torch.float32
    np.testing.assert_allclose(
        F.softmax(x.half(), 1, dtype=torch.float64).cpu().numpy(), exact_softmax(np.array([[1, 2, 3]]), 1), rtol=1e-12
    )


def test_refusals():
    x = torch.ones(2, 3)
    for call, error, words in (
        (lambda: x.long().softmax(1), RuntimeError, "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
        (
            lambda: F.log_softmax(x.bool(), 1),
            RuntimeError,
            "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Bool'",
        ),
        (lambda: x.softmax(2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (lambda: F.softmax([1.0], 0), TypeError, "softmax(): argument "),
        (lambda: F.softmax(1.0, 0), TypeError, "softmax(): argument 'input' (position 1) must be Tensor, not float"),
        (lambda: x.softmax(1, axes=2), TypeError, "softmax() got an unexpected keyword argument 'axes'"),
    ):
        with pytest.raises(error, match="^" + re.escape(words)):
            call()
    torch.testing.assert_close(x.softmax(axis=1), x.softmax(1))
    with pytest.warns(UserWarning, match="^Implicit dimension choice for softmax has been deprecated") as caught:
        assert F.softmax(x).sum(1).allclose(torch.ones(2))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="^Implicit dimension choice for log_softmax"):
        assert F.log_softmax(torch.ones(2, 1, 1)).shape == (2, 1, 1)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["small numbers", "large numbers"])
def test_quick_rows_equal_the_reference(name, scale):
    x = (np.random.default_rng(0).standard_normal((1400, 400)) * scale).astype(np.float32)
    operator = registry[name]
    assert x.size > PIECE
    quick = operator.along(torch.from_numpy(x), 1).numpy()
    np.testing.assert_allclose(
        quick, operator.reference(x.astype(np.float64), dim=1), rtol=2e-6, atol=1e-5 if scale > 1 else 1e-6
    )
    out = np.empty_like(x)
    top, _ = exponentials(x, out) if scale == 1.0 else (np.zeros(1), None)
    assert (top is None) is (scale == 1.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients(name, device):
    rng = np.random.default_rng(5)
    array, weights = rng.standard_normal((2, 4, 9)), rng.standard_normal((2, 4, 9))
    for dim in (0, 1, -1):
        shares = exact_softmax(array, dim)
        inner = (weights * shares).sum(dim, keepdims=True) if name == "softmax" else weights.sum(dim, keepdims=True)
        wanted = shares * (weights - inner) if name == "softmax" else weights - shares * inner
        x = torch.from_numpy(array).to(device).requires_grad_()
        (getattr(x, name)(dim) * torch.from_numpy(weights).to(device)).sum().backward()
        np.testing.assert_allclose(x.grad.cpu().numpy(), wanted, rtol=1e-10, atol=1e-12)
    x = torch.from_numpy(array[0, :2, :3].copy()).requires_grad_()
    torch.autograd.gradcheck(lambda x: getattr(x, name)(0), (x,))
    torch.autograd.gradgradcheck(lambda x: getattr(x, name)(1), (x,))


# ---- layer normalisation --------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_layer_norm(device):
    rng = np.random.default_rng(6)
    for shape, last in (
        ((5, 7), (7,)),
        ((2, 3, 20), (20,)),
        ((2, 3, 4), (3, 4)),
        ((7,), (7,)),
        ((0, 3), (3,)),
        ((3, 0), (0,)),
    ):
        array = rng.standard_normal(shape).astype(np.float32) * 2 + 3
        weight, bias = rng.standard_normal(last).astype(np.float32), rng.standard_normal(last).astype(np.float32)
        axes = tuple(range(len(shape) - len(last), len(shape)))
        wide = array.astype(np.float64)
        if array.size:
            normal = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
        else:
            normal = wide
        x, w, b = (torch.from_numpy(each).to(device) for each in (array, weight, bias))
        for given, wanted in (
            ((None, None), normal),
            ((w, None), normal * weight),
            ((None, b), normal + bias),
            ((w, b), normal * weight + bias),
        ):
            found = F.layer_norm(x, last, *given)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(F.layer_norm(x.new_full((2, 3), 7.0), (3,)), x.new_zeros(2, 3))


def test_layer_norm_in_half_precision_takes_float32_parameters(device):
    x = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float16, device=device)
    weight = torch.full((3,), 2.0, device=device)
    assert F.layer_norm(x, (3,), weight, weight.half()).dtype is torch.float16
    wanted = (np.array([[1, 2, 4]]) - 7 / 3) / np.sqrt(14 / 9 + 1e-5) * 2
    np.testing.assert_allclose(F.layer_norm(x, [3], weight).cpu().numpy(), wanted, rtol=2e-3)


@pytest.mark.thorough
def test_layer_norm_gradients(device):
    rng = np.random.default_rng(8)
    arrays = [
        rng.standard_normal((6, 9)) * 2 + 1,
        rng.standard_normal(9),
        rng.standard_normal(9),
        rng.standard_normal((6, 9)),
    ]
    x, w, b, grad = (torch.from_numpy(array).to(device) for array in arrays)
    fused = [each.clone().requires_grad_() for each in (x, w, b)]
    F.layer_norm(fused[0], (9,), fused[1], fused[2]).backward(grad)
    composed = [each.clone().requires_grad_() for each in (x, w, b)]
    out = F.layer_norm(composed[0], (9,), composed[1], composed[2])
    for found, wanted in zip(fused, torch.autograd.grad(out, composed, grad, create_graph=True)):
        torch.testing.assert_close(found.grad, wanted.detach(), rtol=1e-10, atol=1e-12)
    alone = x.clone().requires_grad_()
    F.layer_norm(alone, (9,)).backward(grad)
    assert alone.grad.shape == (6, 9)


def test_layer_norm_second_order():
    rng = np.random.default_rng(9)
    inputs = tuple(
        torch.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in ((2, 2, 3), (2, 3), (2, 3))
    )
    torch.autograd.gradcheck(lambda x, w, b: F.layer_norm(x, (2, 3), w, b, eps=0.1), inputs)
    torch.autograd.gradgradcheck(lambda x, w, b: F.layer_norm(x, (2, 3), w, b, eps=0.1), inputs)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norm_gradients_of_many_rows_are_sums_of_parts(name):
    """Several programs, each with several tiles of rows; the same bits in every order of the programs."""
    rng = np.random.default_rng(12)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((300, 24), (24,), (300, 24))]
    found = []
    for order in ("forward", "reverse", "shuffle"):
        with torch.cuda.simulate(devices=1), settings.block(64), settings.grid_order(order):
            x, weight, grad = (torch.from_numpy(array).to("cuda") for array in arrays)
            # neither rows side by side, nor elements
            x = torch.cat([x, x], 1)[:, :24].requires_grad_()
            grad = torch.cat([grad.t(), grad.t()])[:24].t()
            weight.requires_grad_()
            getattr(F, name)(x, (24,), weight).backward(grad)
            found.append([x.grad.cpu().numpy(), weight.grad.cpu().numpy()])
    x, weight, grad = (torch.from_numpy(array.astype(np.float64)).requires_grad_() for array in arrays)
    getattr(F, name)(x, (24,), weight).backward(grad.detach())
    for each in found:
        np.testing.assert_allclose(each[0], x.grad.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(each[1], weight.grad.numpy(), rtol=1e-4, atol=1e-5)
        assert all(np.array_equal(one, other) for one, other in zip(each, found[0]))


def test_rms_norm(device):
    rng = np.random.default_rng(10)
    for shape, last in (((5, 7), (7,)), ((2, 3, 4), (3, 4)), ((7,), (7,)), ((0, 3), (3,)), ((3, 0), (0,))):
        array, weight = (rng.standard_normal(each).astype(np.float32) for each in (shape, last))
        axes = tuple(range(len(shape) - len(last), len(shape)))
        wide = array.astype(np.float64)
        for eps in (None, 0.5):
            added = np.finfo(np.float32).eps if eps is None else eps
            normal = wide / np.sqrt(np.square(wide).mean(axes, keepdims=True) + added) if array.size else wide
            x, w = torch.from_numpy(array).to(device), torch.from_numpy(weight).to(device)
            np.testing.assert_allclose(F.rms_norm(x, last, eps=eps).cpu().numpy(), normal, rtol=1e-5)
            np.testing.assert_allclose(F.rms_norm(x, list(last), w, eps).cpu().numpy(), normal * weight, rtol=1e-5)
    half = torch.ones(2, 3, dtype=torch.float16, device=device)
    assert F.rms_norm(half, (3,)).dtype is torch.float16
    assert F.rms_norm(half, (3,), torch.ones(3, device=device)).dtype is torch.float16
    assert F.rms_norm(half, (3,), half[0]).dtype is torch.float16


def test_rms_norm_gradients_of_every_order():
    rng = np.random.default_rng(11)
    inputs = tuple(torch.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in ((2, 2, 3), (2, 3)))
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        check(lambda x, w: F.rms_norm(x, (2, 3), w, eps=0.1), inputs)
        check(lambda x: F.rms_norm(x, (3,), eps=0.1), inputs[:1])


def test_rms_norm_refusals():
    x = torch.ones(2, 3)
    for call, error, words in (
        (lambda: F.rms_norm(x, 3), TypeError, "rms_norm(): argument 'normalized_shape' (position 2) must be tuple"),
        (lambda: F.rms_norm(x, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
        (lambda: F.rms_norm(x, (2,)), RuntimeError, "Given normalized_shape=[2], expected input with shape [*, 2]"),
        (lambda: F.rms_norm(x, (3,), x), RuntimeError, "Expected weight to be of same shape as normalized_shape"),
        (lambda: F.rms_norm(x.long(), (3,)), RuntimeError, "\"rms_norm\" not implemented for 'Long'"),
    ):
        with pytest.raises(error, match="^" + re.escape(words)):
            call()


def test_layer_norm_refusals():
    x, half = torch.ones(2, 3), torch.ones(3, dtype=torch.float64)
    for call, error, words in (
        (
            lambda: F.layer_norm(x, 3),
            TypeError,
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints",
        ),
        (lambda: F.layer_norm(x, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
        (
            lambda: F.layer_norm(x, (4,)),
            RuntimeError,
            "Given normalized_shape=[4], expected input with shape [*, 4], but got",
        ),
        (
            lambda: F.layer_norm(x, (1, 2, 3)),
            RuntimeError,
            "Given normalized_shape=[1, 2, 3], expected input with shape",
        ),
        (
            lambda: F.layer_norm(x, (3,), x[0, :2]),
            RuntimeError,
            "Expected weight to be of same shape as normalized_shape",
        ),
        (lambda: F.layer_norm(x, (3,), None, x), RuntimeError, "Expected bias to be of same shape as normalized_shape"),
        (
            lambda: F.layer_norm(x, (3,), half),
            RuntimeError,
            "mixed dtype (CPU): expect parameter to have scalar type of Float",
        ),
        (lambda: F.layer_norm(x.long(), (3,)), RuntimeError, "\"LayerNormKernelImpl\" not implemented for 'Long'"),
    ):
        with pytest.raises(error, match="^" + re.escape(words)):
            call()
    with (
        torch.cuda.simulate(devices=1),
        pytest.raises(RuntimeError, match=r"^expected scalar type Float but found Double"),
    ):
        F.layer_norm(x.cuda(), (3,), half.cuda())


def test_quick_layer_norm_equals_the_reference():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1400, 400)).astype(np.float32) * 3 + 5
    assert x.size > PIECE
    weight, bias = rng.standard_normal(400).astype(np.float32), rng.standard_normal(400).astype(np.float32)
    outputs = layer_norm_operator(*map(torch.from_numpy, (x, weight, bias)))
    wanted = _layer_norm(*(array.astype(np.float64) for array in (x, weight, bias)))
    for found, exact in zip(outputs, wanted):
        np.testing.assert_allclose(found.numpy(), exact, rtol=1e-5, atol=1e-5)


# ---- how a device divides the work ----------------------------------------------------------------------------


def test_long_rows_are_read_twice_short_ones_once(monkeypatch):
    loops = []
    launch = rowwise_kernel.launch

    def recorded(kernel, grid, arguments, constants, device, **options):
        loops.append(constants["LOOP"])
        launch(kernel, grid, arguments, constants, device, **options)

    monkeypatch.setattr(rowwise_kernel, "launch", recorded)
    with torch.cuda.simulate(devices=1):
        x = torch.randn(3, 70, device="cuda")
        whole = x.softmax(1)
        for block in (16, 32, 35):
            with settings.block(1 << (block - 1).bit_length()):
                torch.testing.assert_close(x.softmax(1), whole)
        with settings.block(2):  # rows of whole blocks: nothing is left for a masked one
            torch.testing.assert_close(x.softmax(1), whole)
    assert loops == [False, True, True, True, True]


def test_offsets_of_64_bits(monkeypatch):
    """What a tensor of more than 2**31 elements takes, on a small one."""
    with torch.cuda.simulate(devices=1), settings.block(4):
        monkeypatch.setattr(rowwise_kernel, "reach", lambda array: 1 << 31)
        x = torch.randn(3, 10, device="cuda")
        np.testing.assert_allclose(x.softmax(0).cpu().numpy(), exact_softmax(x.cpu().numpy(), 0), rtol=1e-5)


def test_a_device_chooses_tiles_by_itself():
    def tile(rows, cols, inner=True, held=1):
        return rowwise_kernel._compiled_tile(rows, cols, inner, held, rowwise_kernel._TILE)

    assert tile(4096, 1000) == (1, 1024, 4)
    assert tile(4096, 100) == (32, 128, 4) and tile(4096, 100, held=2) == (16, 128, 4) and tile(3, 100) == (4, 128, 4)
    assert tile(4096, 5000) == (1, 8192, 8) and tile(4096, 16384) == (1, 16384, 16)
    assert tile(4096, 16385) == (1, 8192, 16) and tile(8, 16384, held=2) == (1, 4096, 16)
    assert tile(4096, 30, inner=False) == (64, 32, 4) and tile(4096, 3000, inner=False) == (64, 64, 4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", ["reverse", "shuffle"])
def test_the_order_of_programs_changes_no_bit(order):
    with torch.cuda.simulate(devices=1), settings.block(8):
        x, w, b = torch.randn(7, 20, device="cuda"), torch.randn(20, device="cuda"), torch.randn(20, device="cuda")

        def bits():
            leaves = [each.clone().requires_grad_() for each in (x, w, b)]
            F.layer_norm(leaves[0], (20,), leaves[1], leaves[2]).softmax(1).pow(2).sum().backward()
            return [leaf.grad.cpu().numpy().tobytes() for leaf in leaves]

        first = bits()
        with settings.grid_order(order):
            assert bits() == first


def test_numpys_warnings_stay_inside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("softmax", "log_softmax"):
            getattr(torch.from_numpy(SPECIAL), name)(1)
            getattr(torch.from_numpy(SPECIAL), name)(0)
        F.layer_norm(torch.from_numpy(SPECIAL), (6,))


# ---- compiled code --------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("rows", "cols", "loop", "inner"),
    [(1, 16384, False, True), (1, 8192, True, True), (16, 128, False, True), (64, 64, False, False)],
)
def test_contiguous_elements_move_in_vectors_of_16_bytes(rows, cols, loop, inner, kind):
    pytest.importorskip("triton")
    from tritensor.runtime.launch import compile_ahead

    bodies = registry["softmax"].bodies
    outer, step = ("i32:16",), "i32:1"
    row, col = (outer, step) if inner else (("i32:1",), "i32:16")
    signature = (
        (f"*{kind}:16",),
        (),
        (f"*{kind}:16",),
        (),
        (),
        (kind == "bf16",),
        (row,),
        (row,),
        (),
        ("i32:16",),
        (col,),
        (col,),
        "i32:16",
        "i32:16",
    )
    element = {"fp32": dtypes.float32, "bf16": dtypes.bfloat16}[kind]
    constants = {
        "APPLY": bodies.apply,
        "SUMMARY": bodies.summary,
        "MERGE": bodies.merge,
        "FINISH": None,
        "PICK": bodies.pick,
        "BEYOND": bodies.beyond,
        "LATE": False,
        "PARTS": 1,
        "EXACT": False,
        "COMPUTE": dtypes.float32,
        "ROW_COMPUTE": (),
        "OUT_DTYPES": (element,),
        "ROW_OUT_DTYPES": (),
        "RANK": 1,
        "INDEX64": False,
        "UNITS": (1,) * 4,
        "LOOP": loop,
        "ROWS": rows,
        "COLS": cols,
    }
    facts = compile_ahead(
        rowwise_kernel.rowwise_kernel, signature, constants, ("cuda", 90), warps=16 if cols > 4096 else 4
    )
    assert facts.local_bytes == 0
    if "sass" in facts.asm:
        moves = re.findall(r"\b(?:LDG|STG)\.E(\S*)", facts.asm["sass"])
        assert moves and all(".128" in move for move in moves)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_dtype_asked_for_is_converted_to_first(name, device):
    x = torch.tensor([0.0, 1e30], device=device)
    found = getattr(torch, name)(x, 0, torch.float16)  # the infinity of float16
    assert found.dtype is torch.float16
    assert np.isnan(found.tolist()).all()
    assert np.isfinite(getattr(torch, name)(x, 0, torch.float32)[1].item())
    close_ones = torch.tensor([1.0, 1.001], device=device)
    assert (
        getattr(torch, name)(close_ones, 0, torch.bfloat16).tolist()[0]
        == getattr(torch, name)(torch.ones(2, device=device), 0, torch.bfloat16)[0].item()
    )
    with pytest.raises(TypeError, match=f"^{name}.*argument 'dtype' .position 3. must be torch.dtype, not str"):
        getattr(torch, name)(x, 0, "float16")
