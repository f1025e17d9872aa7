"""An example for every function: the call, and the operands that it takes.

An example in a function's docstring comes first. The others are calls of the tests of `out=`
(`tests/functional/calls_with_out.py`), and those of the table here. They are run when the pages are made, and what they
print is shown, so that they cannot say what does not happen.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any

import tritensor
from tests.functional.calls_with_out import CALLS as CALLS_WITH_OUT
from tests.functional.calls_with_out import OPERANDS as OPERANDS_WITH_OUT

__all__ = ["RANDOM", "call_of", "setup_of", "shown"]

OPERANDS = {
    **OPERANDS_WITH_OUT,
    "picture": "torch.arange(16.0).reshape(1, 1, 4, 4)",
    "line": "torch.arange(6.0).reshape(1, 1, 6)",
    "volume": "torch.arange(8.0).reshape(1, 1, 2, 2, 2)",
    "scores": "torch.tensor([[2.0, 0.5, 0.25], [0.5, 1.0, 3.0]])",
    "classes": "torch.tensor([0, 2])",
    "signs": "torch.tensor([[1.0, -1.0], [-1.0, 1.0]])",
    "sign": "torch.tensor([1.0, -1.0])",
    "s": "torch.tensor([[2.0, 0.5], [0.5, 1.0]])",
    "z": "torch.tensor([1 + 2j, 3 - 1j])",
    "t": "torch.tensor([-1.5, 0.0, 0.5, 2.0])",
    "steps": "torch.arange(6.0).reshape(3, 1, 2) / 4",
    "signal": "torch.arange(8.0)",
    "ones": "torch.ones(1, 2, 2)",
}

_TABLE: dict[str, str] = {
    "t": """positive celu selu elu leaky_relu relu6 silu mish softsign tanhshrink hardsigmoid hardswish relu
        count_nonzero argwhere argsort logsigmoid""",
    "x": """adjoint is_complex is_conj is_distributed is_floating_point is_inference is_neg is_signed is_tensor
        clone detach diagflat flatten fliplr flipud numel ones_like empty_like full_like rand_like randn_like ravel
        resolve_conj resolve_neg t squeeze unbind std_mean var_mean atleast_1d atleast_2d atleast_3d matrix_exp det
        get_device pinverse zero_ bernoulli equal""",
    "z": "imag real",
    "x, 0": "unsqueeze softmin",
    "x, 2": "chunk hsplit vsplit unsafe_chunk",
    "x, 1": "split unsafe_split",
    "x, [1, 1]": "split_with_sizes unsafe_split_with_sizes",
    "x, 0, 1": "moveaxis movedim swapaxes swapdims transpose",
    "x, (1, 0)": "permute",
    "x, y": """isclose is_same_size l1_loss mse_loss smooth_l1_loss huber_loss poisson_nll_loss
        broadcast_tensors rsub chain_matmul cumulative_trapezoid""",
    "x, signs": "soft_margin_loss hinge_embedding_loss",
    "p, m.float()": "binary_cross_entropy binary_cross_entropy_with_logits multilabel_soft_margin_loss",
    "x.log(), p": "kl_div",
    "x, y, u": "triplet_margin_loss triplet_margin_with_distance_loss gaussian_nll_loss",
    "x, y, sign": "cosine_embedding_loss",
    "v, v / 2, sign": "margin_ranking_loss",
    "scores, classes": "multi_margin_loss nll_loss",
    "scores, torch.tensor([[0, -1, 0], [2, 0, -1]])": "multilabel_margin_loss",
    "x, 0.5, True": "dropout alpha_dropout feature_alpha_dropout feature_dropout",
    "picture, 0.5": "dropout2d",
    "volume, 0.5": "dropout3d",
    "line, 2": "adaptive_max_pool1d adaptive_max_pool1d_with_indices max_pool1d max_pool1d_with_indices",
    "picture, 2": """adaptive_max_pool2d_with_indices max_pool2d max_pool2d_with_indices""",
    "volume, 2": "max_pool3d max_pool3d_with_indices",
    "volume, 1": "adaptive_max_pool3d_with_indices",
    "picture, 2, output_size=2": "fractional_max_pool2d_with_indices",
    "volume, 1, output_size=1": "fractional_max_pool3d_with_indices",
    "picture, scale_factor=2": "upsample upsample_bilinear upsample_nearest",
    "picture, torch.zeros(1, 1, 1, 2), 0, 0, False": "grid_sampler grid_sampler_2d",
    "volume, torch.zeros(1, 1, 1, 1, 3), 0, 0, False": "grid_sampler_3d",
    "torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), False": "affine_grid_generator",
    "4": "blackman_window hamming_window hann_window kaiser_window bartlett_window",
}
CALLS: dict[str, str] = {
    **CALLS_WITH_OUT,
    **{name: call for call, names in _TABLE.items() for name in names.split()},
    "as_strided_scatter": "x, v, (2,), (1,)",
    "as_tensor": "[1.0, 2.0]",
    "asarray": "[1.0, 2.0]",
    "batch_norm": "x, v, v, None, None, True, 0.1, 1e-5, False",
    "broadcast_to": "v, (2, 2)",
    "constant_pad_nd": "x, (1, 1), 0.0",
    "diagonal_scatter": "x, v",
    "dsplit": "volume[0], 2",
    "embedding": "x, classes - classes",
    "empty_permuted": "(2, 3), (1, 0)",
    "Tensor.as_subclass": "torch.Tensor",
    "Tensor.to_device": '"cpu"',
    "equal": "x, x",
    "from_numpy": "np.arange(3.0)",
    "full_like": "x, 2.0",
    "randint_like": "x, 5",
    "group_norm": "x, 1",
    "instance_norm": "line, None, None, None, None, True, 0.1, 1e-5, False",
    "gru_cell": "x, x, torch.ones(6, 2), torch.ones(6, 2)",
    "lstm_cell": "x, (x, x), torch.ones(8, 2), torch.ones(8, 2)",
    "rnn_relu_cell": "x, x, x, y",
    "rnn_tanh_cell": "x, x, x, y",
    "gru": "steps, torch.zeros(1, 1, 2), [torch.ones(6, 2), torch.ones(6, 2)], False, 1, 0.0, False, False, False",
    "lstm": "steps, [torch.zeros(1, 1, 2)] * 2, [torch.ones(8, 2)] * 2, False, 1, 0.0, False, False, False",
    "rnn_relu": "steps, torch.zeros(1, 1, 2), [x, y], False, 1, 0.0, False, False, False",
    "rnn_tanh": "steps, torch.zeros(1, 1, 2), [x, y], False, 1, 0.0, False, False, False",
    "gumbel_softmax": "scores",
    "index_fill": "x, 0, i[0, :1], 7.0",
    "index_put": "x, (i[0], i[1]), v",
    "is_nonzero": "torch.tensor([2.0])",
    "istft": "torch.stft(signal, 4, return_complex=True), 4",
    "stft": "signal, 4, return_complex=True",
    "linear_cross_entropy": "x, scores.T, classes",
    "multi_head_attention_forward": (
        "steps, steps, steps, 2, 1, torch.ones(6, 2), torch.zeros(6), None, None, False, 0.0, x, v"
    ),
    "narrow": "x, 0, 0, 1",
    "native_batch_norm": "x, v, v, None, None, True, 0.1, 1e-5",
    "native_group_norm": "line, None, None, 1, 1, 6, 1, 1e-5",
    "pca_lowrank": "x, 1",
    "svd_lowrank": "x, 1",
    "prelu": "t, torch.tensor([0.25])",
    "range": "0, 3",
    "resize_as_": "x, v",
    "rrelu": "t",
    "scalar_tensor": "2.0",
    "select": "x, 0, 1",
    "triu_indices": "2, 3",
    "unflatten": "x, 1, (2, 1)",
    # of tritensor.linalg
    "linalg.cholesky": "s",
    "linalg.cholesky_ex": "s",
    "linalg.cross": "torch.eye(3)[0], torch.eye(3)[1]",
    "linalg.eigh": "s",
    "linalg.eigvalsh": "s",
    "linalg.householder_product": "x, v",
    "linalg.ldl_factor": "s",
    "linalg.ldl_factor_ex": "s",
    "linalg.ldl_solve": "*torch.linalg.ldl_factor(s), x",
    "linalg.lstsq": "x, y",
    "linalg.lu_solve": "*torch.linalg.lu_factor(x), y",
    "linalg.matmul": "x, y",
    "linalg.matrix_power": "x, 3",
    "linalg.multi_dot": "[x, y, x]",
    "linalg.solve": "x, y",
    "linalg.solve_ex": "x, y",
    "linalg.solve_triangular": "x, y, upper=True",
    "linalg.tensorinv": "torch.eye(4).reshape(4, 2, 2), 1",
    "linalg.tensorsolve": "torch.eye(4).reshape(2, 2, 2, 2), x",
    "linalg.vander": "v",
    "linalg.vecdot": "x, y",
    # of tritensor.fft, where they take no signal
    "fft.fftfreq": "4",
    "fft.rfftfreq": "4",
    "fft.fft2": "x",
    "fft.ifft2": "x",
    "fft.rfft2": "x",
    "fft.ihfft2": "x",
    # of tritensor.special
    "special.zeta": "u, u",
    "special.gammainc": "x, y",
    "special.gammaincc": "x, y",
    "special.multigammaln": "x, 1",
    "special.polygamma": "1, x",
    "special.softmax": "x, 0",
    "special.log_softmax": "x, 0",
    "special.logsumexp": "x, 0",
    "special.xlogy": "x, y",
    "special.xlog1py": "x, y",
    # methods without a function
    "Tensor.apply_": "lambda value: value + 1",
    "Tensor.map_": "y, lambda a, b: a + b",
    "Tensor.map2_": "y, u, lambda a, b, c: a + b + c",
    "Tensor.copy_": "y",
    "Tensor.expand": "2, 2, 2",
    "Tensor.expand_as": "y",
    "Tensor.fill_diagonal_": "7.0",
    "Tensor.geometric_": "0.5",
    "Tensor.new_empty": "(2,)",
    "Tensor.new_empty_strided": "(2,), (1,)",
    "Tensor.new_full": "(2,), 3.0",
    "Tensor.new_ones": "2",
    "Tensor.new_tensor": "[1.0, 2.0]",
    "Tensor.new_zeros": "2",
    "Tensor.repeat": "2, 1",
    "Tensor.reshape_as": "y",
    "Tensor.resize_": "4",
    "Tensor.set_": "y",
    "Tensor.is_set_to": "y",
    "Tensor.sum_to_size": "1, 2",
    "Tensor.to": "torch.float64",
    "Tensor.type": "torch.float64",
    "Tensor.type_as": "i",
    "Tensor.unfold": "0, 2, 1",
    "Tensor.view": "4",
    "Tensor.view_as": "y",
}
ORTHOGONAL = ["chebyshev_polynomial", "hermite_polynomial", "laguerre_polynomial", "legendre_polynomial"]

#: the statements that show a method of the backward pass, of an `x` that requires a gradient
BACKWARD = {
    "backward": ["x.sum().backward()", "x.grad"],
    "retain_grad": ["y = x * 2", "y.retain_grad()", "y.sum().backward()", "y.grad"],
    "register_hook": ["handle = x.register_hook(print)", "x.sum().backward()"],
    "register_post_accumulate_grad_hook": [
        "handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))",
        "x.sum().backward()",
    ],
}
#: methods of sparse tensors, to which `x` is converted first
SPARSE = ("coalesce", "indices", "values", "is_coalesced", "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_")

#: methods whose example needs a device; docs/devices.md has them
DEVICE = ("cuda", "record_stream", "pin_memory")

#: names whose results are drawn, or are whatever the memory holds
RANDOM = re.compile(
    r"rand|empty|dropout|bernoulli|multinomial|normal|poisson|binomial|rrelu|gumbel|fractional|lowrank|cauchy|uniform"
    r"|exponential_|geometric|random|seed"
)


def call_of(name: str) -> str | None:
    """The arguments of the example of a function, `x, 0`; None where there is none in the tables."""
    space, _, plain = name.rpartition(".")
    if name in CALLS:
        return CALLS[name]
    if space == "special":
        if any(word in plain for word in ORTHOGONAL):
            return "x, 2"
        return CALLS.get(plain, "x")
    if space == "fft":
        return "ones[0]" if plain.endswith(("2", "n")) else "signal"
    if space == "linalg":
        return CALLS.get(plain, "x")
    if space == "Tensor":
        return None if plain in DEVICE else ""
    return CALLS.get(plain)


def setup_of(call: str) -> list[str]:
    """The statements that make the operands which a call names."""
    names = [node.id for node in ast.walk(ast.parse(f"f({call})")) if isinstance(node, ast.Name)]
    found = [f"{name} = {OPERANDS[name]}" for name in dict.fromkeys(names) if name in OPERANDS]
    return ["import numpy as np", *found] if "np" in names else found


def shown(statements: list[str], names: dict[str, Any] | None = None) -> Iterator[str]:
    """The lines of a session that runs the statements, as Python's prompt shows it.

    Raises what a statement raises.
    """
    names = {"torch": tritensor} if names is None else names
    for statement in statements:
        lines = statement.split("\n")
        yield f">>> {lines[0]}"
        yield from (f"... {line}" for line in lines[1:])
        out, before = io.StringIO(), sys.displayhook
        sys.displayhook = lambda value: None if value is None else print(repr(value), file=out)  # noqa: B023
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(statement, "<example>", "single"), names)
        finally:
            sys.displayhook = before
        yield from out.getvalue().rstrip("\n").split("\n") if out.getvalue() else ()
