"""Complex tensors on devices: made, moved, viewed as real numbers, and computed with as pairs of them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operators import registry
from tritensor.operators.rules import FLOAT

from ..needs import needs_triton

pytestmark = needs_triton

KINDS = [torch.complex64, torch.complex128]


def drawn(*shape: int, dtype: Any = torch.complex64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.asarray(rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(dtype.numpy))


def same(found: Any, wanted: Any, tolerance: float = 0.0) -> None:
    assert found.is_cuda and not wanted.is_cuda
    found, wanted = found.detach().cpu().numpy(), wanted.detach().numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


MOVED = {
    "clone": lambda x, at: x.clone(),
    "transposed": lambda x, at: x.t().contiguous(),
    "sliced": lambda x, at: x[1:, ::2].clone(),
    "cat": lambda x, at: torch.cat([x, x[:, :2]], 1),
    "stack": lambda x, at: torch.stack([x, x.flip(0)]),
    "index": lambda x, at: x[at([2, 0, 2])],
    "index_select": lambda x, at: x.index_select(1, at([4, 1])),
    "gather": lambda x, at: x.gather(0, at([[0, 1], [2, 3]])),
    "scatter": lambda x, at: x.scatter(1, at([[0, 1], [2, 3]]), x[2:, 2:4]),
    "put numbers": lambda x, at: x.index_fill(0, at([1, 3]), 2 - 1j),
    "sums at places": lambda x, at: x.scatter_add(0, at([[0, 0], [2, 0]]), x[2:, :2]),
    "masked": lambda x, at: x[x.real > 0],
    "masked fill": lambda x, at: x.masked_fill(x.imag > 0, 5j),
    "where": lambda x, at: torch.where(x.real > 0, x, 1j),
    "nonzero": lambda x, at: (x * (x.real > 0)).nonzero(),
    "real": lambda x, at: x.real + 0,
    "imag": lambda x, at: x.imag.contiguous(),
    "to float": lambda x, at: x.float(),
    "to bool": lambda x, at: (x * (x.real > 0)).bool(),
    "to the other": lambda x, at: x.to(torch.complex64 if x.dtype is torch.complex128 else torch.complex128),
    "from real": lambda x, at: x.real.to(x.dtype),
    "from bool": lambda x, at: (x.real > 0).to(x.dtype),
    "filled": lambda x, at: x.clone().fill_(3 - 1j),
    "written": lambda x, at: x.clone().index_put_((at([0, 2]),), x[1]),
    "copied": lambda x, at: x.clone().copy_(x.real),
}


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("name", MOVED)
def test_what_moves_elements_moves_pairs(name: str, dtype: Any) -> None:
    x, move = drawn(4, 5, dtype=dtype), MOVED[name]
    with torch.cuda.simulate(devices=1):
        same(move(x.cuda(), lambda places: torch.tensor(places).cuda()), move(x, torch.tensor))


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_tensors_are_made_and_copied(dtype: Any) -> None:
    with torch.cuda.simulate(devices=2):
        x = drawn(3, 4, dtype=dtype)
        for moved in (x.cuda(), x.to("cuda:1"), x.cuda().to("cuda:1"), x.t().cuda().t(), x.cuda().t().to("cuda:1").t()):
            same(moved, x)
        assert torch.zeros(2, dtype=dtype, device="cuda").tolist() == [0, 0]
        assert torch.full((2,), 1 - 2j, dtype=dtype, device="cuda").tolist() == [1 - 2j] * 2
        assert torch.ones(2, dtype=dtype, device="cuda").tolist() == [1, 1]
        assert torch.arange(3, dtype=dtype, device="cuda").tolist() == [0, 1, 2]
        assert torch.tensor([1j, 2], dtype=dtype, device="cuda")[0].item() == 1j
        assert torch.eye(2, dtype=dtype, device="cuda").tolist() == [[1, 0], [0, 1]]
        assert x.real.to("cuda", dtype).tolist() == x.real.tolist()
        assert repr(torch.tensor([1 + 2j], device="cuda")) == "tensor([1.+2.j], device='cuda:0')"
        file = io.BytesIO()
        torch.save(x.cuda(), file)
        file.seek(0)
        same(torch.load(file), x)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_real_and_imaginary_parts_are_views(device: str) -> None:
    with torch.cuda.simulate(devices=1):
        z = torch.tensor([1 + 2j, 3 - 4j], device=device)
        pairs = torch.view_as_real(z)
        assert pairs.tolist() == [[1, 2], [3, -4]] and (pairs.stride(), pairs.dtype) == ((2, 1), torch.float32)
        assert torch.view_as_complex(pairs).tolist() == z.tolist()
        assert z.imag.storage_offset() == 1 and z[1:].imag.storage_offset() == 3
        z.real[1] = 7
        z.imag = torch.tensor([0.0, 5.0], device=device)
        torch.view_as_real(z)[0, 0] += 1
        assert z.tolist() == [2, 7 + 5j]
        assert torch.real(pairs) is pairs and pairs.real is pairs
        assert torch.view_as_real(torch.tensor(1j, device=device)).tolist() == [0, 1]
        assert torch.view_as_real(z.reshape(2, 1)[:, :0]).shape == (2, 0, 2)
        padded = torch.zeros(1, 3, device=device)[:, :2]
        assert torch.view_as_complex(padded).tolist() == [0]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gradients_of_parts(device: str) -> None:
    with torch.cuda.simulate(devices=1):
        z = torch.tensor([1 + 2j, 3 - 4j], device=device, requires_grad=True)
        (z.real * 2 + z.imag * 3).backward(torch.tensor([1.0, 10.0], device=device))
        assert z.grad.tolist() == [2 + 3j, 20 + 30j]
        assert z.real.grad_fn.name() == "SelectBackward0"
        assert torch.view_as_real(z).grad_fn.name() == "ViewAsRealBackward0"
        x = torch.tensor([[1.0, 2.0]], device=device, requires_grad=True)
        made = torch.view_as_complex(x)
        assert made.grad_fn.name() == "ViewAsComplexBackward0"
        made.backward(torch.tensor([5 - 6j], device=device))
        assert x.grad.tolist() == [[5, -6]]
        changed = torch.tensor([1 + 1j, 2j], device=device, requires_grad=True)
        out = changed * 1
        out.real.zero_()
        out.backward(torch.tensor([1 + 2j, 3 + 4j], device=device))
        assert changed.grad.tolist() == [2j, 4j]


def test_what_is_no_pair_is_refused() -> None:
    flat = torch.ones(12)
    for call, words in (
        (lambda: torch.view_as_real(flat), "view_as_real is only supported for complex tensors"),
        (lambda: torch.view_as_complex(flat.int()), "view_as_complex is only supported for half, float and double"),
        (lambda: torch.view_as_complex(flat[0]), "Input tensor must have one or more dimensions"),
        (lambda: torch.view_as_complex(flat), "Tensor must have a last dimension of size 2"),
        (lambda: torch.view_as_complex(flat.view(3, 4)[:, ::2]), "Tensor must have a last dimension with stride 1"),
        (lambda: torch.view_as_complex(flat.view(4, 3)[:, :2]), "Tensor must have a stride divisible by 2 for all but"),
        (lambda: torch.view_as_complex(flat[1:3]), "Tensor must have a storage_offset divisible by 2"),
        (lambda: torch.imag(flat), "imag is not implemented for tensors with non-complex dtypes."),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_what_has_no_kernel_says_so_before_it_changes_anything() -> None:
    with torch.cuda.simulate(devices=1):
        z = drawn(4).cuda()
        before = torch.cuda.memory_allocated()
        without = Elementwise("without", np.exp, FLOAT, inputs=("x",))
        del registry["without"]
        without.kernel(lambda x: x)
        with pytest.raises(RuntimeError, match="without: complex tensors have no kernel, got tritensor") as raised:
            without(z)
        assert "move the operands with .cpu()" in str(raised.value)
        assert torch.cuda.memory_allocated() == before


# ---- values and gradients beside those of the CPU -----------------------------------------------------------------

REDUCED = {
    "sum": lambda x: x.sum(),
    "sum of some": lambda x: x.sum((0, 2), True),
    "sum of a transposed": lambda x: x.permute(2, 0, 1)[:, ::2].sum(1),
    "sum of none": lambda x: x[:, :0].sum(1),
    "sum of real": lambda x: x.real.sum(dtype=torch.complex64),
    "sum as real": lambda x: x.detach().sum(1, dtype=torch.float64),
    "sum as wider": lambda x: x.sum(1, dtype=torch.complex128),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "prod of none": lambda x: x[:, :0].prod(1),
    "prod as real": lambda x: x.detach().prod(1, dtype=torch.float32),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum as real": lambda x: x.detach().cumsum(1, dtype=torch.float32),
    "cumsum of one": lambda x: x[0, 0, 0].cumsum(0),
    "any": lambda x: x.detach()[:, :, :0].any(1),
    "all": lambda x: (x.detach() * (x.real > 0)).all(1),
    "count": lambda x: (x.detach() * (x.real > 0)).count_nonzero(1),
    "std": lambda x: x.std(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "padded": lambda x: torch.nn.functional.pad(x, (2, 1), mode="circular"),
    "unfolded": lambda x: torch.nn.functional.unfold(x, (2, 3), padding=1),
    "folded": lambda x: torch.nn.functional.fold(x[:, :, :4], (3, 3), (2, 2)),
    "norm": lambda x: x.norm(3, dim=0),
}
PRODUCTS = {
    "matrices": ((4, 3), (3, 5), lambda x, y: x @ y),
    "stacks": ((2, 4, 3), (2, 3, 5), torch.matmul),
    "broadcast": ((2, 4, 3), (3, 5), torch.matmul),
    "of a transposed": ((3, 4), (5, 3), lambda x, y: x.t() @ y.mT),
    "of every second": ((4, 6), (6, 5), lambda x, y: x[:, ::2] @ y[1::2]),
    "matrix and vector": ((4, 3), (3,), lambda x, y: x @ y),
    "vector and matrix": ((3,), (3, 4), lambda x, y: x @ y),
    "vectors": ((7,), (7,), torch.dot),
    "nothing": ((4, 0), (0, 5), lambda x, y: x @ y),
    "no result": ((0, 3), (3, 5), lambda x, y: x @ y),
    "linear": ((4, 3), (5, 3), lambda x, y: torch.nn.functional.linear(x, y, y[:, 0])),
    "convolution": ((2, 2, 6), (3, 2, 3), lambda x, y: torch.nn.functional.conv1d(x, y, y[:, 0, 0], padding=1)),
    "groups": ((1, 4, 5, 5), (2, 2, 2, 3), lambda x, y: torch.nn.functional.conv2d(x, y, stride=2, groups=2)),
    "transposed convolution": (
        (2, 2, 5),
        (2, 3, 3),
        lambda x, y: torch.nn.functional.conv_transpose1d(x, y, y[0, :, 0]),
    ),
    "added rows": ((4, 3), (3, 4), lambda x, y: torch.addmm(y[0, :1], x, y)),
    "added": ((4, 3), (3, 4), lambda x, y: torch.addmm(x[:, :1], x, y, beta=2, alpha=1j)),
}


def beside(call: Any, *inputs: Any, tolerance: float = 2e-5) -> None:
    """Compare results and gradients on a device with those of the CPU."""
    here, there = [x.clone().requires_grad_() for x in inputs], [x.cuda().requires_grad_() for x in inputs]
    wanted, found = call(*here), call(*there)
    same(found, wanted, tolerance)
    if wanted.requires_grad:
        grad = torch.ones_like(wanted) * (1 - 0.5j if wanted.is_complex() else 1)
        wanted.backward(grad)
        found.backward(grad.cuda())
        for x, y in zip(there, here, strict=True):
            if y.grad is not None:
                same(x.grad, y.grad, tolerance)


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str) -> None:
    with torch.cuda.simulate(devices=1):
        beside(REDUCED[name], drawn(3, 4, 5))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    first, second, product = PRODUCTS[name]
    with torch.cuda.simulate(devices=1):
        beside(product, drawn(*first), drawn(*second, seed=1))


def test_no_activation_is_fused_into_a_complex_product() -> None:
    with torch.cuda.simulate(devices=1):
        x = drawn(2, 3).cuda()
        with pytest.raises(RuntimeError, match="relu: complex tensors have no kernel"):
            registry["linear"](x, x, activation="relu")
        window = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1, "size": (3,)}
        with pytest.raises(RuntimeError, match="relu: complex tensors have no kernel"):
            registry["convolution"](x[None], x[None, :, :1], **window, activation="relu")


BINARY = {
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "cube": lambda x, y: x**3,
    "of a number": lambda x, y: (1 + 1j) ** x - 2 / y,
    "real and complex": lambda x, y: x.real * y + x * y.imag - 2,
    "where": lambda x, y: torch.where(x.imag > 0, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=2),
    "sgn": lambda x, y: x.sgn() + y.abs(),
    "tanh": lambda x, y: x.tanh() + y.tanh().square(),
    "sqrt": lambda x, y: x.sqrt() * y.log(),
    "rows": lambda x, y: x.t() + y.t()[:1],
}


@pytest.mark.parametrize("name", BINARY)
def test_gradients_element_by_element(name: str) -> None:
    with torch.cuda.simulate(devices=1):
        beside(BINARY[name], drawn(4, 6), drawn(4, 6, seed=1), tolerance=1e-4)


def test_second_gradients() -> None:
    with torch.cuda.simulate(devices=1):
        found = []
        for device in ("cpu", "cuda"):
            x = drawn(3, 3).to(device).requires_grad_()
            (first,) = torch.autograd.grad(((x @ x).exp() * x).abs().sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first * first.conj()).real.sum(), x)
            found.append(second.cpu())
        assert ((found[0] - found[1]).abs() <= found[0].abs() * 1e-4).all()


@pytest.mark.parametrize("layout", [lambda x: x.t().contiguous().t(), lambda x: x[::2, 1:], lambda x: x.flip(0)[:, 2]])
def test_every_layout(layout: Any) -> None:
    x, y = drawn(6, 8), drawn(6, 8, seed=1)
    with torch.cuda.simulate(devices=1):
        for call in (lambda a, b: a * b, lambda a, b: a + b, lambda a, b: torch.where(a.real > 0, a, b), torch.ne):
            same(call(layout(x.cuda()), layout(y.cuda())), call(layout(x), layout(y)), 1e-6)
            same(call(layout(x.cuda()), layout(y.cuda()).clone()), call(layout(x), layout(y)), 1e-6)


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    special = [
        0,
        1,
        -1,
        1j,
        -1j,
        2,
        complex(0, -0.0),
        complex(inf, 0),
        complex(-inf, 0),
        complex(0, inf),
        nan,
        1e30,
        30j,
    ]
    x = torch.tensor(special, dtype=torch.complex64)
    with torch.cuda.simulate(devices=1):
        for name in ("abs", "sgn", "exp", "log", "sqrt", "square", "isnan", "isinf", "isfinite", "eq", "logical_not"):
            arguments = (x, x) if name == "eq" else (x,)
            found = registry[name](*[each.cuda() for each in arguments]).cpu().numpy()
            wanted = registry[name](*arguments).numpy()
            finite = np.isfinite(wanted)
            np.testing.assert_allclose(found[finite], wanted[finite], 1e-5, 1e-6, err_msg=name)
            np.testing.assert_array_equal(np.isfinite(found), finite, name)
        for base, exponent in ((0, 0.0), (0, 2.0), (0, 1j), (2j, 2), (3, 0)):
            z = torch.tensor([base], dtype=torch.complex64)
            np.testing.assert_allclose((z.cuda() ** exponent).cpu().numpy(), (z**exponent).numpy(), 1e-6)
        assert (torch.tensor([1 + 2j], device="cuda") ** 2).tolist() == [-3 + 4j]


def test_complex_random_numbers_are_those_of_the_cpu() -> None:
    with torch.cuda.simulate(devices=1):
        for draw in (torch.rand, torch.randn):
            for dtype in KINDS:
                torch.manual_seed(0)
                wanted = draw(3, 2, dtype=dtype)
                torch.manual_seed(0)
                same(draw(3, 2, dtype=dtype, device="cuda"), wanted, 1e-6)


def test_checked_mode_compares_pairs() -> None:
    body = registry["mul"].complex_body
    z = drawn(5)
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        (z.cuda() * z.cuda()).sum()
        z.cuda() @ z.cuda()
        registry["mul"].complex_body = registry["add"].complex_body
        try:
            with pytest.raises(torch.errors.KernelMismatchError, match="mul: the kernel and its reference disagree"):
                z.cuda() * z.cuda()
        finally:
            registry["mul"].complex_body = body


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_optimizers_step_complex_parameters(name: str) -> None:
    with torch.cuda.simulate(devices=1):
        found = []
        for device in ("cpu", "cuda"):
            real = torch.nn.Parameter(torch.tensor([2.0], device=device))
            param = torch.nn.Parameter(torch.tensor([1 + 2j, 3 - 1j], device=device))
            optimizer = getattr(torch.optim, name)([param, real], lr=0.1)
            for _ in range(2):
                optimizer.zero_grad()
                ((param * param.conj()).real.sum() * real.sum()).backward()
                version = param._version
                optimizer.step()
                assert param._version > version
            found.append(param.tolist() + real.tolist())
        np.testing.assert_allclose(*found, 1e-5, 1e-6)


def test_out_and_changes_in_place() -> None:
    with torch.cuda.simulate(devices=1):
        z = torch.tensor([1 + 2j, 3], device="cuda")
        out = torch.empty_like(z)
        assert torch.mul(z, z, out=out) is out and out.tolist() == [-3 + 4j, 9]
        torch.sum(z, 0, out=out[1])
        assert out[1].item() == 4 + 2j
        out += z.real
        out[:1] *= 1j
        assert out.tolist() == [-4 - 2j, 7 + 2j]
        real = torch.ones(2, device="cuda")
        with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast"):
            real *= 1j
        assert real.copy_(z).tolist() == [1, 3]
        moved = torch.func.vmap(lambda row: row * row[0])(torch.stack([z, z]))
        assert moved.tolist() == [[-3 + 4j, 3 + 6j]] * 2


def test_graphs_replay_complex_work() -> None:
    with torch.cuda.simulate(devices=1):
        z, graph = torch.tensor([1j, 2], device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = (z @ z) * z.sum()
        z.fill_(2j)
        graph.replay()
        assert result.item() == pytest.approx(-32j)
