"""Copies of views, changes of shape in place, functions of methods, what a tensor is, and tensors over memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch

# PyTorch's functions of methods
FUNCTIONS = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_
    ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_
    fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_
    rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_
    zero_ get_device is_conj is_distributed is_inference is_neg is_nonzero is_same_size is_signed
    """

COPIES = {
    "alias_copy(x)": "AliasBackward0",
    "as_strided_copy(x, (2, 2), (1, 2))": "AsStridedBackward0",
    "detach_copy(x)": "torch::autograd::NotImplemented",
    "diagonal_copy(x, 1)": "DiagonalBackward0",
    "expand_copy(x, (2, 2, 3))": "ExpandBackward0",
    "narrow_copy(x, 1, 1, 2)": "SliceBackward0",
    "permute_copy(x, (1, 0))": "PermuteBackward0",
    "select_copy(x, 0, 1)": "SelectBackward0",
    "slice_copy(x, 1, 0, 3, 2)": "SliceBackward0",
    "split_copy(x, 2, 1)[1]": "SplitBackward0",
    "split_with_sizes_copy(x, (1, 1))[1]": "SplitWithSizesBackward0",
    "squeeze_copy(x, (0, 1))": "SqueezeBackward2",
    "t_copy(x)": "TBackward0",
    "transpose_copy(x, 0, 1)": "TransposeBackward0",
    "unbind_copy(x)[1]": "UnbindBackward0",
    "unfold_copy(x, 1, 2, 1)": "UnfoldBackward0",
    "unsqueeze_copy(x, 1)": "UnsqueezeBackward0",
    "view_copy(x, (3, 2))": "ViewBackward0",
}


@pytest.mark.parametrize("call", COPIES)
def test_copies_of_views(call: str, device: torch.device) -> None:
    x = torch.arange(6.0, device=device).view(2, 3).requires_grad_()
    made = eval(f"torch.{call}", {"torch": torch, "x": x})
    view = call.replace("_copy(x, ", "(").replace("_copy(x)", "()")
    there = {"alias()": "x", "slice(1, 0, 3, 2)": "x[:, 0:3:2]"}.get(view, f"x.{view}")
    assert made.tolist() == eval(there, {"x": x}).tolist() and made.is_contiguous()
    assert made.grad_fn.name().removesuffix("_copy") == COPIES[call]
    with torch.no_grad():
        made.fill_(9)
    assert x.max() == 5


def test_changes_of_shape_in_place(device: torch.device) -> None:
    x = torch.arange(6.0, device=device).view(1, 2, 3).requires_grad_()
    y = x * 1
    before = y.data_ptr()
    assert y.squeeze_(0) is y and y.t_().shape == (3, 2) and y.unsqueeze_(-1).transpose_(0, 2).shape == (1, 2, 3)
    assert y.swapaxes_(0, 1).swapdims_(0, 1).tolist() == x.tolist() and y.data_ptr() == before and y._version == 6
    assert y.grad_fn.name() == "TransposeBackward1" and not y.is_leaf
    assert (x * 1).squeeze_().grad_fn.name() == "SqueezeBackward3"
    (y * torch.arange(6.0, device=device).view(1, 2, 3)).sum().backward()
    assert x.grad.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    z = torch.arange(4, device=device).as_strided_((2, 2), (1, 1), 1)
    assert z.tolist() == [[1, 2], [2, 3]]
    assert (x[0] * 1).tril_().tolist() == [[0, 0, 0], [3, 4, 0]]
    assert torch.ones(2, 2).triu_().tolist() == [[1, 1], [0, 1]]


def test_views_of_a_tensor_that_changes_its_shape_stay_as_they_are() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    base = x * 1
    row = base[0]
    base.t_()
    row.mul_(torch.tensor([2.0, 3.0, 4.0]))
    assert base.tolist() == [[2, 1], [3, 1], [4, 1]]
    (base * torch.tensor([[1.0, 1.0], [10.0, 1.0], [100.0, 1.0]])).sum().backward()
    assert x.grad.tolist() == [[2, 30, 400], [1, 1, 1]]


def test_a_view_that_changes_its_shape_is_a_view_still() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    base = x * 1
    part = base[1:]
    part.t_()
    part.mul_(2)
    assert base.tolist() == [[1, 1, 1], [2, 2, 2]]
    (base.sum() + 10 * part.sum()).backward()
    assert x.grad.tolist() == [[1, 1, 1], [22, 22, 22]]
    with torch.no_grad():
        part.t_()
    assert part.shape == (1, 3) and part.grad_fn.next_functions


def test_leaves_that_require_grad_keep_their_shape() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    for leaf, words in ((x, "a leaf Variable that requires grad"), (x[:1], "a view of a leaf Variable")):
        with pytest.raises(RuntimeError, match=words):
            leaf.t_()
    with torch.no_grad():
        assert x.t_().shape == (3, 2) and x.is_leaf and x.requires_grad
    saved = torch.ones(2, 2, requires_grad=True) * 2
    y = saved * saved
    saved.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_pieces_that_are_no_views() -> None:
    x = torch.ones(4, requires_grad=True)
    first, second = torch.unsafe_chunk(x * 1, 2)
    assert first.grad_fn.name() == "UnsafeSplitBackward0" and first._origin is None
    (first * 2 + second).sum().backward()
    assert x.grad.tolist() == [2, 2, 1, 1]


def test_methods_that_are_functions() -> None:
    assert all(hasattr(torch.Tensor, name) and hasattr(torch, name) for name in FUNCTIONS.split())
    others = ("absolute_", "add_", "atan2_", "digamma_", "erfinv_", "lgamma_", "logical_not_", "pow_", "sgn_", "sign_")
    assert all(hasattr(torch.Tensor, name) and not hasattr(torch, name) for name in others)
    x = torch.tensor([-1.5, 2.5])
    assert torch.abs_(x) is x and torch.clamp_(x, max=2.0).tolist() == [1.5, 2.0]
    assert torch.resize_as_(x, torch.ones(1)).shape == (1,) and torch.is_nonzero(x) and torch.get_device(x) == -1
    assert torch.is_signed(x) and not torch.is_conj(x) and torch.is_same_size(x, torch.zeros(1))
    with pytest.raises(TypeError, match=r"sin_\(\): argument 'input' \(position 1\) must be Tensor, not float"):
        torch.sin_(1.0)
    with pytest.raises(TypeError, match=r"unbind_copy\(\): argument 'input' \(position 1\) must be Tensor"):
        torch.unbind_copy([1])


def test_what_a_tensor_is(device: torch.device) -> None:
    x = torch.ones(2, 2, device=device)
    assert x.is_cpu == (device.type == "cpu") != x.is_cuda
    for name in ("is_sparse", "is_meta", "is_quantized", "is_nested", "is_mps", "is_xla", "is_mkldnn", "is_sparse_csr"):
        assert getattr(x, name) is False
    assert not (x.is_neg() or x.is_inference() or x.is_distributed())
    assert x.is_set_to(x[:]) and not x.is_set_to(x[0]) and not x.is_set_to(x.clone()) and not x.is_set_to(x.t())
    assert x.layout is torch.strided is pickle.loads(pickle.dumps(x.layout)) and str(x.layout) == "tritensor.strided"
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        x.is_nonzero()
    assert torch.typename(x.double().cpu()) == "torch.DoubleTensor" and torch.typename("a") == "str"
    assert torch.typename(torch.nn.Linear) == "tritensor.nn.linear.Linear"
    assert torch.ones(2).cfloat().dtype is torch.complex64 and torch.ones(2).cdouble().dtype is torch.complex128
    z = torch.tensor([[1 + 2j, 3j]])
    assert z.mH.tolist() == z.H.tolist() == z.adjoint().tolist() == [[1 - 2j], [-3j]]


def test_functions_of_python_element_by_element() -> None:
    x, y = torch.arange(4).view(2, 2), torch.tensor([10, 20])
    assert x.apply_(lambda each: each * 2 + 0.5).tolist() == [[0, 2], [4, 6]]
    assert x.map_(y, lambda one, other: one + other).tolist() == [[10, 22], [14, 26]]
    assert x.map2_(y, x, lambda one, two, three: one - three + two).tolist() == [[10, 20], [10, 20]]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad. Use var.detach"):
        torch.ones(2, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError, match=r"map_\(\) takes tensors of one dtype"):
        x.map_(y.float(), max)
    with torch.cuda.simulate(devices=1), pytest.raises(TypeError, match=r"apply_\(\) is only implemented on CPU"):
        torch.ones(2, device="cuda").apply_(abs)


@pytest.mark.filterwarnings("ignore:torch.range")
def test_new_memory_with_strides(device: torch.device) -> None:
    x = torch.empty_strided((2, 3), (1, 4), dtype=torch.int32, device=device, requires_grad=False)
    assert x.stride() == (1, 4) and x.dtype is torch.int32 and x.device == device and x.fill_(3).sum() == 18
    assert torch.empty_strided((0, 3), (1, 4), device=device).shape == (0, 3)
    like = x.new_empty_strided((2, 2), (1, 2), dtype=torch.float32)
    assert like.stride() == (1, 2) and like.dtype is torch.float32 and like.device == device
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1), device=device).stride() == (12, 1, 3)
    y = torch.ones(3, device=device).resize_as_(torch.zeros(2, 1, device=device))
    assert y.tolist() == [[1.0], [1.0]]
    z = torch.zeros(2, device=device)
    assert z.set_(y) is z and z.is_set_to(y) and z.set_(y, 1, (1,)).storage_offset() == 1 and z.set_().shape == (0,)
    y.mul_(3)
    assert z.set_(y, 0, (2, 2), (1, 0)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert torch.range(1, 2, 0.5, device=device).tolist() == [1.0, 1.5, 2.0]


def test_numbers_in_a_range_and_in_a_buffer() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated and will be removed in a future release"):
        assert torch.range(3, dtype=torch.int64).tolist() == [0, 1, 2, 3]
    memory = bytearray(np.arange(4, dtype=np.int16).tobytes())
    x = torch.frombuffer(memory, dtype=torch.int16, count=2, offset=2)
    assert x.tolist() == [1, 2]
    memory[2] = 7
    assert x.tolist() == [7, 2] and torch.frombuffer(memory, dtype=torch.int16).shape == (4,)
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        x = torch.frombuffer(b"12", dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="read-only"):
        x.zero_()


WRONG: dict[str, Any] = {
    "torch.range(0, 1, 0)": (RuntimeError, "step must be nonzero"),
    "torch.range(3, 0)": (RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    "torch.range(0, float('inf'))": (RuntimeError, "unsupported range: 0 -> inf"),
    "torch.empty_strided((2, 2), (1,))": (RuntimeError, "dimensionality of sizes (2) must match dimensionality of str"),
    "torch.empty_strided((2,), (-1,))": (RuntimeError, "Storage size calculation overflowed with sizes=[2] and stri"),
    "torch.empty_strided((-2,), (1,))": (RuntimeError, "Trying to create tensor with negative dimension -2: [-2]"),
    "torch.empty_permuted((2, 3), (1,))": (RuntimeError, "Number of dimensions in size does not match the length of"),
    "torch.empty_permuted((2, 3), (1, 2))": (RuntimeError, "Dimension out of range (expected to be between 0 and 1"),
    "torch.empty_permuted((2, 3), (1, 1))": (RuntimeError, "Duplicate dim not allowed"),
    "torch.frombuffer(3, dtype=torch.int32)": (ValueError, "object does not implement Python buffer protocol."),
    "torch.frombuffer(b'', dtype=torch.int8)": (ValueError, "both buffer length (0) and count (-1) must not be 0"),
    "torch.frombuffer(b'12', dtype=torch.int8, offset=2)": (ValueError, "offset (2 bytes) must be non-negative and no"),
    "torch.frombuffer(b'123', dtype=torch.int16)": (ValueError, "buffer length (3 bytes) after offset (0 bytes) must"),
    "torch.frombuffer(b'12', dtype=torch.int16, count=2)": (ValueError, "requested buffer length (2 * 2 bytes) after"),
    "torch.ones(2).set_(torch.ones(2).int())": (RuntimeError, "Could not set tensor of type"),
    "torch.ones(2, requires_grad=True).set_(torch.ones(2))": (RuntimeError, "a leaf Variable that requires grad is"),
    "torch.ones(2).is_set_to(1)": (TypeError, "is_set_to(): argument 'tensor' (position 1) must be Tensor, not int"),
}


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.filterwarnings("ignore:torch.range")
def test_what_is_refused(call: str) -> None:
    kind, words = WRONG[call]
    with pytest.raises(kind) as caught:
        eval(call, {"torch": torch})
    assert str(caught.value).startswith(words)
