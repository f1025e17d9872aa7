"""PyTorch's samples of modules and operators give the same here, or differ as listed. Run with `pytest -m peer`."""

from __future__ import annotations

from contextlib import suppress
from fnmatch import fnmatch
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's own tests import

import torch as reference

import tritensor
from tritensor.errors import ShapeError, TritensorError
from tritensor.nn import functional

from ..needs import needs_triton
from ..programs.drawing import words
from ..programs.kinds import CRASH, ERROR
from ..sampling import some
from . import modules, operators, optimizers
from .__main__ import main
from .cases import NODES, RANDOM, Row, compared
from .running import chosen, report, run
from .sides import Untranslated, ours, tensors, theirs

pytestmark = pytest.mark.peer

MODULES = [name for name in modules.ENTRIES if modules.is_there(name)]
FAMILIES = words("""
    conv* *_pool?d max_unpool?d* fractional* *fold interpolate* upsample_* grid_sample *_shuffle *_unshuffle
    *batch_norm *instance_norm *group_norm *layer_norm *rms_norm local_response_norm pad* *dropout*
    """)
SHAPES = words("""
    diag diag_embed diagflat diagonal diagonal_scatter as_strided as_strided.partial_views as_strided_scatter
    select_scatter slice_scatter unfold movedim rot90 atleast_?d hsplit vsplit dsplit tensor_split split_with_sizes
    unsafe_split unsafe_chunk ravel unravel_index tile repeat_interleave block_diag cartesian_prod combinations
    constant_pad_nd triu_indices tril_indices vander trapz trapezoid cumulative_trapezoid gradient diff *_copy T H mT mH
    resize_ resize_as_ empty_strided new_empty_strided empty_permuted zero_ split split.list_args chunk unbind repeat
    """)
LAYERS = words("""
    relu relu6 elu celu selu glu prelu rrelu leaky_relu hardswish hardsigmoid hardshrink hardtanh softshrink softplus
    softmin softsign threshold embedding embedding_bag bilinear pdist pairwise_distance cosine_similarity
    """)
ARITHMETIC = words("""
    copysign nextafter heaviside lcm gcd xlogy logaddexp2 sinc signbit isposinf angle deg2rad frexp ldexp float_power
    logit complex polar real isreal view_as_complex addmv addr addbmm baddbmm vdot tensordot kron trace cross dist
    renorm rsub fill __rdiv__
    """)
# What asks for elements, of which meta tensors have none.
WITHOUT_ELEMENTS = words("""
    item allclose equal istft linspace.* logspace.* masked_select narrow tensor_split index_put unique* bincount nonzero
    argwhere nn.functional.ctc_loss nn.functional.gaussian_nll_loss nn.functional.one_hot repeat_interleave
    linalg.lstsq*
    """)
PICTURES = chosen("operators", [f"nn.functional.{family}" for family in FAMILIES])
SHAPES = [name for name in chosen("operators", SHAPES) if name != "index_copy" and not name.startswith("linalg.")]
LOSSES = chosen("operators", ["nn.functional.*_loss", "nn.functional.kl_div", "nn.functional.*cross_entropy*"])
OF_DEVICES = words(
    "Conv Pool Norm Pad LU Hard Soft Threshold Embedding Bilinear Distance Similarity Loss Attention Transformer"
)
ON_DEVICES = [name for name in MODULES if any(each in name for each in OF_DEVICES)]


def assert_alike(row: Row) -> None:
    assert row.samples, f"{row.name} has no samples"
    assert not row.found and not row.missing, report([row])


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    assert_alike(run("modules", name))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", optimizers.ENTRIES)
def test_optimizers(name: str, dtype: str) -> None:
    row = run("optimizers", name, most=None if dtype == "float64" else 8, dtype=dtype)
    row.missing = 0  # parameters of sparse layouts
    assert_alike(row)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", optimizers.ENTRIES)
def test_optimizers_on_a_simulated_device(name: str) -> None:
    row = run("optimizers", name, "simulated", most=4)
    row.missing = 0
    assert_alike(row)


@pytest.mark.parametrize("name", PICTURES)
def test_operators_of_pictures(name: str) -> None:
    row = run("operators", name)
    assert_alike(row)
    assert not row.listed, report([row])


@pytest.mark.parametrize("name", SHAPES)
def test_operators_of_shapes(name: str) -> None:
    row = run("operators", name)
    row.missing *= name != "gradient"  # places on the device meta
    assert_alike(row)


def shapes(case: Any, device: str) -> dict[str, Any]:
    """The shapes and dtypes of what a sample gives on a device, and of its gradients."""
    facts = case.facts(ours(device))
    return {
        name: [(each.shape, each.dtype) for each in tensors(value)]
        for name, value in facts.items()
        if name not in (NODES, RANDOM)
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", some(filter(operators.is_there, operators.ENTRIES), 8))
def test_operators_on_meta(name: str) -> None:
    cases = [case for case in operators.cases(name, reference.float64, 1) if case.words is None]
    for case in cases[:: len(cases) // 6 + 1]:
        try:
            expected = shapes(case, "cpu")
        except Exception:  # what is not there, and what is compared elsewhere
            continue
        if not any(fnmatch(name, each) for each in WITHOUT_ELEMENTS):
            assert shapes(case, "meta") == expected, case.statement
        else:
            with suppress(NotImplementedError, ShapeError):
                assert shapes(case, "meta") == expected, case.statement


@pytest.mark.parametrize("name", LAYERS)
def test_operators_of_layers(name: str) -> None:
    assert_alike(run("operators", f"nn.functional.{name}"))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_operators_of_arithmetic(name: str) -> None:
    assert_alike(run("operators", name))


@pytest.mark.parametrize("name", LOSSES)
def test_operators_of_losses(name: str) -> None:
    row = run("operators", name)
    assert row.agree and not row.found, report([row])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in PICTURES if name != "nn.functional.avg_pool3d"])
def test_operators_of_pictures_in_half_precision(name: str, dtype: str) -> None:
    assert_alike(run("operators", name, most=20, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_attention(dtype: str) -> None:
    assert_alike(run("operators", "nn.functional.scaled_dot_product_attention", dtype=dtype))


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention_on_a_simulated_device(dtype: str) -> None:
    assert_alike(run("operators", "nn.functional.scaled_dot_product_attention", "simulated", dtype=dtype))


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_DEVICES)
def test_modules_on_a_simulated_device(name: str) -> None:
    assert_alike(run("modules", name, "simulated", most=8))


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_operators_of_shapes_on_a_simulated_device(name: str) -> None:
    whole = name in ("tril_indices", "triu_indices", "unravel_index")  # they have samples of whole numbers alone
    row = run("operators", name, "simulated", most=3, dtype="int64" if whole else "float32")
    assert row.agree + row.listed.total() and not row.found, report([row])


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", [*PICTURES, *(f"nn.functional.{name}" for name in LAYERS)])
def test_operators_on_a_simulated_device(name: str) -> None:
    assert_alike(run("operators", name, "simulated", most=5))


# What is planted in a function is found: what it does to the result, and what is told.
PLANTED = {
    "value": (lambda out: out * 1.0001, "value of result"),
    "dtype": (lambda out: out.float(), "dtype of result"),
    "first gradient": (lambda out: out * 2 - out.detach(), "value of first gradient"),
    "second gradient": (lambda out: Once.apply(out), "value of second gradient [1]"),
    "node": (lambda out: out * 1, "result of nodes"),
    "strides": (lambda out: out.mT.contiguous().mT, "layout of result"),
    "missing": (None, "no counterpart of"),
}


class Once(tritensor.autograd.Function):
    """The identity, whose gradient is no function of the one that comes in."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.detach() + 0 * grad


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, told = PLANTED[what]
    right = functional.avg_pool2d
    if change is None:
        monkeypatch.delattr(functional, "avg_pool2d")
    else:
        monkeypatch.setattr(functional, "avg_pool2d", lambda *args, **kwargs: change(right(*args, **kwargs)))
    found = compared(next(operators.cases("nn.functional.avg_pool2d", reference.float64, 2)))
    assert found is not None and found.detail.startswith(told)


def test_what_a_module_does_to_its_state_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tritensor.nn.BatchNorm1d.forward

    def forward(self: Any, input: Any) -> Any:
        out = right(self, input)
        self.running_mean.add_(1e-6)
        return out

    monkeypatch.setattr(tritensor.nn.BatchNorm1d, "forward", forward)
    found = compared(next(modules.cases("BatchNorm1d", reference.float64, 2)))
    assert found is not None and found.detail.startswith("value of state [2]")


def test_errors_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(each for each in modules.cases("GroupNorm", reference.float64, 1) if each.words)
    assert compared(case) is None
    outcomes = {
        ShapeError("of another type"): ERROR,
        Refused("in other words"): ERROR,
        KeyError(): CRASH,
    }
    for error, outcome in outcomes.items():
        monkeypatch.setattr(tritensor.nn.GroupNorm, "__init__", _raiser(error))
        found = compared(case)
        assert found is not None and found.outcome == outcome


class Refused(TritensorError, ValueError):
    """Of the type that PyTorch's error has."""


def _raiser(error: Exception) -> Any:
    def init(self: Any, *args: Any) -> None:
        raise error

    return init


def test_tensors_are_translated_with_their_strides() -> None:
    x = reference.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2].permute(2, 0, 1).requires_grad_()
    for side in (theirs(), ours()):
        y = side([{"x": x}])[0]["x"]
        assert y.stride() == x.stride() and y.tolist() == x.tolist() and y.requires_grad and y.is_leaf
    wide = reference.ones(1, dtype=reference.bfloat16).expand(3)
    assert ours()(wide).dtype is tritensor.bfloat16
    assert ours()((reference.float16, reference.device("cpu"), reference.nn.functional.relu)) == (
        tritensor.float16,
        tritensor.device("cpu"),
        functional.relu,
    )
    with pytest.raises(Untranslated):
        ours()(reference.ones(2).to_sparse())


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(tritensor.nn, "CELU")
        assert main(["modules", "AvgPool1d", "CELU", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "| AvgPool1d | 4 | 4 | 0 | 0 | 0 |  |" in printed and "| CELU | 0 | 0 | 0 | 0 | 0 | missing |" in printed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tritensor.nn, "AvgPool1d", tritensor.nn.AvgPool2d)
        assert main(["modules", "AvgPool1d", "--most", "1"]) == 1
    assert "torch.nn.AvgPool1d(" in capsys.readouterr().out
