"""Indices and arguments that the operators refuse, in PyTorch's words."""

from __future__ import annotations

import warnings

import pytest

import tritensor as torch
from tritensor.kernels.indexing import family
from tritensor.nn.functional import embedding, one_hot

from .arrays import T

Z = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (RuntimeError, lambda: Z.gather(0, T([[5]])), "index 5 is out of bounds for dimension 0 with size 2"),
        (RuntimeError, lambda: Z.gather(0, T([[-1]])), "index -1 is out of bounds for dimension 0 with size 2"),
        (RuntimeError, lambda: Z.gather(0, T([[0.0]])), r"gather\(\): Expected dtype int32/int64 for index"),
        (
            RuntimeError,
            lambda: Z.gather(0, T([0])),
            "Index tensor must have the same number of dimensions as input tensor",
        ),
        (
            RuntimeError,
            lambda: Z.gather(0, torch.zeros(1, 5, dtype=torch.int64)),
            r"Size does not match at dimension 1 expected index",
        ),
        (IndexError, lambda: Z.gather(2, T([[0.0]])), "Dimension out of range"),
        (IndexError, lambda: Z.scatter(2, T([[0.0]]), T([[1]])), "Dimension out of range"),
        (IndexError, lambda: Z.scatter_add(2, T([[0]]), T([[1]])), "Dimension out of range"),
        (IndexError, lambda: Z.index_select(2, T([0.0])), "Dimension out of range"),
        (IndexError, lambda: Z.index_add(2, T([0.0]), Z), "Dimension out of range"),
        (IndexError, lambda: Z.index_copy(-3, T([0.0]), Z), "Dimension out of range"),
        (IndexError, lambda: T(1.0).index_add(0, T([0, 0]), T(1.0)), "Dimension specified as 0 but tensor has no dim"),
        (TypeError, lambda: Z.gather(0, 1), "argument 'index' must be Tensor, not int"),
        (RuntimeError, lambda: Z.scatter(0, T([[5]]), 1.0), "index 5 is out of bounds for dimension 0 with size 2"),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([[1]]), T([[1]])),
            r"scatter\(\): Expected self.dtype to be equal to src.dtype",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([0]), 1.0),
            "Index tensor must have the same number of dimensions as self tensor",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([[0]]), T([1.0])),
            "Index tensor must have the same number of dimensions as src tensor",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, torch.zeros(1, 5, dtype=torch.int64), 1.0),
            r"Expected index \[1, 5\] to be no larger than self",
        ),
        (
            RuntimeError,
            lambda: Z.scatter_add(0, torch.zeros(2, 3, dtype=torch.int64), torch.ones(1, 3)),
            "and to be no larger size than src",
        ),
        (RuntimeError, lambda: Z.scatter(0, T([[0]]), 1.0, reduce="max"), "reduce argument must be either add or mult"),
        (IndexError, lambda: Z.index_select(0, T([5])), "index out of range in self"),
        (IndexError, lambda: Z.index_select(0, T([-1])), "index out of range in self"),
        (IndexError, lambda: Z.index_select(0, T([[1]])), r"index_select\(\): Index is supposed to be a vector"),
        (IndexError, lambda: Z.index_select(2, T([1])), "Dimension out of range"),
        (
            RuntimeError,
            lambda: Z.index_select(0, T([1.0])),
            r"index_select\(\): Expected dtype int32 or int64 for index",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([5]), torch.ones(1, 3)),
            "index 5 is out of bounds for dimension 0 with size 2",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(2, 3)),
            r"Number of indices \(1\) should be equal to source.size\(dim\): \(2\)",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(1, 4)),
            "source tensor shape must match self tensor shape",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(1, 3, dtype=torch.float64)),
            "must have the same scalar type",
        ),
        (
            IndexError,
            lambda: Z.index_add(0, T([[0]]), torch.ones(1, 3)),
            "Index is supposed to be a vector, but got dim: 2",
        ),
        (RuntimeError, lambda: T(5.0).index_add(0, T([0]), T([3.0])), r"Got self.shape = \[\] source.shape = \[1\]"),
        (
            RuntimeError,
            lambda: T([5.0]).index_add(0, T([0]), T(3.0)),
            r"Got self.shape = \[1\] source.shape = \[\]",
        ),
        (RuntimeError, lambda: Z.index_add(1, T([0]), T([3.0])), "Indexing dim 1 is out of bounds of the source"),
        (IndexError, lambda: T(5.0).index_fill(0, T([1]), 3), "index 1 is out of bounds for dimension 0 with size 1"),
        (IndexError, lambda: T(5.0).index_fill(0, T([-2]), 3), "index -2 is out of bounds for dimension 0 with size 1"),
        (IndexError, lambda: T([5.0]).index_copy(0, T([-1]), T([1.0])), "index -1 is out of bounds"),
        (
            IndexError,
            lambda: T(5.0).index_copy(0, T([0, 0]), T(3.0)),
            r"When source is scalar, index should have one element \(got 2\)",
        ),
        (
            IndexError,
            lambda: Z.index_copy(0, T([0]), T([3.0, 4.0, 5.0])),
            r"dimensionality must match. Source dimensionality \(1\), destination dimensionality \(2\)",
        ),
        (
            RuntimeError,
            lambda: Z.index_copy(0, T([0]), torch.ones(1, 4)),
            r"must have same slice shapes. Destination slice shape: \[3\] at dimension 0 and source slice shape: \[4\]",
        ),
        (
            IndexError,
            lambda: Z.index_copy(0, T([0]), torch.ones(2, 3)),
            r"Number of indices \(1\) should be equal to source.size\(dim\) \(2\)",
        ),
        (
            RuntimeError,
            lambda: Z.index_fill(0, T([0]), 1 + 2j),
            "Converting complex Scalar to non-complex type is not supported",
        ),
        (RuntimeError, lambda: T(5.0).index_select(0, T([0, 0])), "Index to scalar can have only 1 value, got 2"),
        (IndexError, lambda: torch.zeros(0).take(T([0])), "tried to take from an empty tensor"),
        (
            RuntimeError,
            lambda: Z.index_fill(0, T([0]), T([1.0])),
            "index_fill_ only supports a 0-dimensional value tensor",
        ),
        (
            RuntimeError,
            lambda: Z.masked_fill(T([1, 0, 1]), 2),
            "masked_fill_ only supports boolean masks, but got mask with dtype",
        ),
        (
            RuntimeError,
            lambda: Z.masked_fill(T([True]), T([1.0])),
            "masked_fill_ only supports a 0-dimensional value tensor",
        ),
        (RuntimeError, lambda: torch.zeros(3).masked_fill_(torch.zeros(2, 3).bool(), 1.0), "output with shape"),
        (RuntimeError, lambda: Z.masked_select(T([1, 0, 1])), "masked_select: expected BoolTensor for mask"),
        (IndexError, lambda: Z.take(T([6])), "out of range: tried to access"),
        (
            RuntimeError,
            lambda: Z.take_along_dim(T([0]), 0),
            "input and indices should have the same number of dimensions",
        ),
        (ValueError, lambda: torch.cat([]), "expected a non-empty list of Tensors"),
        (RuntimeError, lambda: torch.hstack([]), "hstack expects a non-empty TensorList"),
        (RuntimeError, lambda: torch.column_stack([]), "column_stack expects a non-empty TensorList"),
        (
            TypeError,
            lambda: torch.cat(Z),
            r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
        ),
        (TypeError, lambda: torch.cat([Z, 1]), "expected Tensor as element 1 in argument 0, but got int"),
        (
            RuntimeError,
            lambda: torch.cat([Z, torch.zeros(2, 4)]),
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4",
        ),
        (
            RuntimeError,
            lambda: torch.cat([Z, torch.zeros(2)]),
            "Tensors must have same number of dimensions: got 2 and 1",
        ),
        (
            RuntimeError,
            lambda: torch.cat([T(1.0)]),
            r"zero-dimensional tensor \(at position 0\) cannot be concatenated",
        ),
        (IndexError, lambda: torch.cat([Z], 2), "Dimension out of range"),
        (RuntimeError, lambda: torch.stack([]), "stack expects a non-empty TensorList"),
        (RuntimeError, lambda: torch.stack([Z, Z[0]]), "stack expects each tensor to be equal size"),
        (RuntimeError, lambda: torch.flip(Z, [0, 0]), "dim 0 appears multiple times in the list of dims"),
        (TypeError, lambda: torch.flip(Z, ["a"]), r"flip\(\): argument 'dims' must be tuple of ints, not str"),
        (RuntimeError, lambda: torch.fliplr(Z[0]), "Input must be >= 2-d."),
        (RuntimeError, lambda: torch.flipud(T(1.0)), "Input must be >= 1-d."),
        (RuntimeError, lambda: torch.roll(Z, (1, 2), (0,)), "shifts and dimensions must align. shifts: 2, dims:1"),
        (RuntimeError, lambda: torch.roll(Z, ()), "`shifts` required"),
        (RuntimeError, lambda: Z.repeat(2), "Number of dimensions of repeat dims can not be smaller"),
        (RuntimeError, lambda: Z.repeat(-1, 1), "Trying to create tensor with negative dimension -2"),
        (RuntimeError, lambda: Z.repeat_interleave(-1), "Repeats must be non-negative"),
        (RuntimeError, lambda: Z.repeat_interleave(T([1, -1]), 0), "repeats can not be negative"),
        (
            RuntimeError,
            lambda: Z.repeat_interleave(T([1, 1, 1]), 0),
            "repeats must have the same size as input along dim",
        ),
        (RuntimeError, lambda: Z.repeat_interleave(T([[1]]), 0), "repeats must be 0-dim or 1-dim tensor"),
        (RuntimeError, lambda: Z.repeat_interleave(T([1.0]), 0), "not implemented for"),
        (RuntimeError, lambda: torch.zeros(2).tril(), "tril: input tensor must have at least 2 dimensions"),
        (RuntimeError, lambda: torch.topk(Z, 4), "selected index k out of range"),
        (RuntimeError, lambda: torch.topk(T(1.0), 2), "selected index k out of range"),
        (IndexError, lambda: torch.sort(Z, 2), "Dimension out of range"),
        (IndexError, lambda: embedding(T([2]), Z), "index out of range in self"),
        (IndexError, lambda: embedding(T([-1]), Z), "index out of range in self"),
        (RuntimeError, lambda: embedding(T([0.0]), Z), "Expected tensor for argument #1 'indices'"),
        (RuntimeError, lambda: embedding(T([0]), Z[0]), "'weight' must be 2-D"),
        (AssertionError, lambda: embedding(T([0]), Z, padding_idx=2), "Padding_idx must be within num_embeddings"),
        (RuntimeError, lambda: one_hot(T([0, 2]), 2), "Class values must be smaller than num_classes."),
        (RuntimeError, lambda: one_hot(T([-1]), 2), "Class values must be non-negative."),
        (RuntimeError, lambda: one_hot(T([0.0])), "one_hot is only applicable to index tensor of type LongTensor."),
        (
            RuntimeError,
            lambda: one_hot(torch.zeros(0, dtype=torch.int64)),
            "Can not infer total number of classes from empty tensor.",
        ),
        (RuntimeError, lambda: family.check_bounds(T([0.5]), 2, 0), "index tensors must be of an integer dtype"),
        (RuntimeError, lambda: family.index_put(Z, T([[0]]), T([1]), dims=(0,)), "index_put"),
    ],
)
def test_bad_arguments_are_refused_in_pytorchs_words(kind, call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=message):
            call()
    assert (Z == 0).all()
