"""Matrix products that are refused, in PyTorch's words: shapes, dtypes, what is no tensor, other devices."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.functional import addmm, bmm, dot, inner, linear, matmul, mm, mv, outer
from tritensor.kernels.matmul import family

from ...needs import needs_triton


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ones(2, 3) @ ones(2, 3), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        (lambda: ones(4, 2, 3) @ ones(2, 3), r"mat1 and mat2 shapes cannot be multiplied \(8x3 and 2x3\)"),
        (lambda: ones(2) @ ones(3, 2), r"mat1 and mat2 shapes cannot be multiplied \(1x2 and 3x2\)"),
        (
            lambda: ones(4, 2, 3) @ ones(4, 2, 3),
            r"Expected size for first two dimensions of batch2 tensor to be: \[4, 3\] but got: \[4, 2\].",
        ),
        (lambda: ones(4, 2, 3) @ ones(5, 3, 2), r"The size of tensor a \(4\) must match the size of tensor b \(5\)"),
        (lambda: ones(2, 3) @ ones(2), r"size mismatch, got input \(2\), mat \(2x3\), vec \(2\)"),
        (lambda: ones(2) @ ones(3), r"inconsistent tensor size, expected tensor \[2\] and src \[3\]"),
        (lambda: ones() @ ones(3, 3), r"both arguments to matmul need to be at least 1D, but they are 0D and 2D"),
        (lambda: mm(ones(2), ones(3, 3)), "self must be a matrix"),
        (lambda: mm(ones(2, 2), ones(3)), "mat2 must be a matrix"),
        (lambda: bmm(ones(2, 2), ones(3, 3, 3)), "batch1 must be a 3D tensor"),
        (lambda: bmm(ones(2, 2, 2), ones(3, 3)), "batch2 must be a 3D tensor"),
        (lambda: bmm(ones(1, 2, 2), ones(2, 2, 2)), "Expected size for first two dimensions of batch2 tensor"),
        (lambda: mv(ones(2), ones(3)), r"vector \+ matrix @ vector expected, got 1, 1, 1"),
        (lambda: dot(ones(2, 2), ones(3)), "1D tensors expected, but got 2D and 1D tensors"),
        (lambda: inner(ones(2, 2), ones(3)), r"inner\(\) the last dimension must match"),
        (lambda: outer(ones(2, 2), ones(3)), "outer: Expected 1-D argument self, but got 2-D"),
        (lambda: outer(ones(2), ones(3, 3)), "outer: Expected 1-D argument vec2, but got 2-D"),
        (lambda: addmm(ones(4), ones(2, 3), ones(4, 3)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x3\)"),
        (lambda: addmm(ones(4), ones(3), ones(3, 4)), "mat1 must be a matrix, got 1-D tensor"),
        (lambda: addmm(ones(3), ones(2, 3), ones(3, 4)), r"The expanded size of the tensor \(4\) must match"),
        (lambda: addmm(ones(3), ones(2, 3), ones(3, 4), alpha=2), r"The expanded size of the tensor \(4\) must match"),
        (lambda: linear(ones(2, 3), ones(4, 2)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x4\)"),
        (lambda: linear(ones(3), ones(4, 2)), r"mat1 and mat2 shapes cannot be multiplied \(1x3 and 2x4\)"),
        (
            lambda: linear(ones(2, 3), ones(4, 3), ones(5)),
            r"The expanded size of the tensor \(4\) must match the existing",
        ),
        (lambda: linear(ones(2, 3), ones(3), ones()), "mat2 must be a matrix, got 1-D tensor"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_in_pytorchs_words(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_number_is_no_matrix():
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        mv(ones(), ones(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ones(2, 3) @ ones(3, 2, dtype=torch.float64),
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
        (
            lambda: ones(2, 3, dtype=torch.int64) @ ones(3, 2),
            "expected m1 and m2 to have the same dtype, but got: long int != float",
        ),
        (lambda: ones(2, 2, dtype=torch.float16) @ ones(2, 2, dtype=torch.bfloat16), "got: c10::Half != c10::BFloat16"),
        (
            lambda: linear(ones(2, 3), ones(4, 3), ones(4, dtype=torch.float64)),
            "to have the same dtype, but got: float != double",
        ),
        (
            lambda: torch.dot(ones(3), ones(2, dtype=torch.float16)),
            "dot : expected both vectors to have same dtype, but found Float and Half",
        ),
        (lambda: ones(2, 2, dtype=torch.bool) @ ones(2, 2, dtype=torch.bool), "not implemented for 'Bool'"),
    ],
)
def test_dtypes_are_never_mixed(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_only_tensors_are_multiplied():
    x = torch.ones(2, 2)
    for call in (lambda: x @ 2, lambda: 2 @ x, lambda: x @ None, lambda: np.ones((2, 2), np.float32) @ x):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match=r"matmul\(\): argument 'other' \(position 2\) must be Tensor, not NoneType"):
        matmul(x, None)
    with pytest.raises(TypeError, match=r"linear\(\): argument 'bias' \(position 3\) must be Tensor, not float"):
        family.linear(x, x, 1.0)


@needs_triton
def test_operands_on_different_devices_are_named():
    with torch.cuda.simulate(devices=2):
        x = torch.ones(2, 2)
        with pytest.raises(RuntimeError, match=r"(?s)Expected all tensors to be on the same device.*weight.*cuda:1"):
            linear(x.cuda(0), x.cuda(1))
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            x @ x.cuda()
