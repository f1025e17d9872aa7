"""PowerSGD: gradients of matrices are averaged as products of two thin matrices (arXiv:1905.13727).

A gradient M of n x m becomes P = M Q with a random Q of r columns; the sum of all processes' P is made orthonormal, the
average of their M^T P is the next Q, and P Q^T the gradient: (n + m) r numbers are sent, of n m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import require
from ....functional.creation.creation import zeros
from ....functional.random.draws import randn
from ....functional.views.joining import cat
from ....linalg import qr
from ....operators.generators import Generator
from ....tensors import Tensor
from ...collectives import all_reduce
from ...futures import Future
from ...grad_bucket import GradBucket
from ...groups import get_world_size
from .default_hooks import averaged

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


@dataclass
class PowerSGDState:
    """The options of PowerSGD, and what it keeps from one pass to the next.

    Whole gradients are averaged in the first `start_powerSGD_iter` passes, and always those that P and Q of
    `matrix_approximation_rank` columns would not make `min_compression_rate` times smaller. What a pass loses is added
    to the next (`use_error_feedback`), which begins with its Q (`warm_start`). `orthogonalization_epsilon` is added to
    norms of columns. The last two options are accepted, and not used. A group of None is all processes; a state that is
    saved loses its group.
    """

    process_group: Any
    matrix_approximation_rank: int = 1
    start_powerSGD_iter: int = 1000
    min_compression_rate: float = 2
    use_error_feedback: bool = True
    warm_start: bool = True
    orthogonalization_epsilon: float = 0
    random_seed: int = 0
    compression_stats_logging_frequency: int = 10000
    batch_tensors_with_same_shape: bool = False

    def __post_init__(self) -> None:
        words = "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
        words += "can only be applied after the first two iterations in DDP."
        require(self.start_powerSGD_iter > 1 or not (self.use_error_feedback or self.warm_start), ValueError, words)
        self.rng = np.random.RandomState(self.random_seed)
        self.iter = self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "process_group": None}

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers were sent than there were, and both counts."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradient of each parameter of several dimensions as a product of two thin matrices."""
    return _averaged(state, bucket, bucket.buffer(), bucket.gradients(), state.min_compression_rate)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average all gradients of a bucket as one square matrix: faster than `powerSGD_hook`, and less exact."""
    buffer = bucket.buffer()
    side = math.isqrt(buffer.numel() - 1) + 1
    square = cat([buffer, zeros(side * side - buffer.numel(), dtype=buffer.dtype, device=buffer.device)])
    return _averaged(state, bucket, square, [square.reshape(side, side)], 0)


def _averaged(state: PowerSGDState, bucket: GradBucket, whole: Tensor, parts: list[Tensor], rate: float) -> Any:
    """Average parts of a flat tensor: as products where these have `rate` times fewer elements."""
    index, count = bucket.index(), bucket.buffer().numel()
    if state.iter < state.start_powerSGD_iter:
        state.iter += bucket.is_last()
        return averaged(state.process_group, bucket.buffer())
    if state.use_error_feedback:
        if index in state.error_dict:
            whole.add_(state.error_dict[index])
        before = whole.clone()
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    sent = 0
    for x in parts:
        matrix = x.reshape(x.shape[0] if x.ndim else 1, -1)
        size = sum(matrix.shape) * min(*matrix.shape, state.matrix_approximation_rank)
        smaller = size * rate < x.numel()
        (matrices if smaller else others).append(matrix if smaller else x.reshape(-1))
        sent += size if smaller else x.numel()
    state.total_numel_before_compression += count
    state.total_numel_after_compression += sent
    direct: Any = averaged(state.process_group, cat(others)) if others else None
    products = _products(state, index, matrices) if matrices else direct

    def finish(_: object) -> Tensor:
        if others:
            for x, average in zip(others, direct.wait().split([x.numel() for x in others]), strict=True):
                x.copy_(average)
        if state.use_error_feedback:
            state.error_dict[index] = before - whole
        state.iter += bucket.is_last()
        return whole.narrow(0, 0, count)

    return products.then(finish)


def _products(state: PowerSGDState, index: int, matrices: list[Tensor]) -> Future[None]:
    """Replace each matrix by P Q^T, of all processes' matrices."""
    group, epsilon = state.process_group, state.orthogonalization_epsilon
    columns = [min(*x.shape, state.matrix_approximation_rank) for x in matrices]
    shapes = [(x.shape[1], r) for x, r in zip(matrices, columns, strict=True)]
    if not state.warm_start or index not in state.q_memory_dict:
        drawn = Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
        start = randn(sum(m * r for m, r in shapes), generator=drawn, dtype=matrices[0].dtype)
        state.q_memory_dict[index] = start.to(matrices[0].device)
    q = state.q_memory_dict[index]
    qs = _orthogonal(q, shapes, epsilon)
    p = cat([(x @ right).reshape(-1) for x, right in zip(matrices, qs, strict=True)])
    state.p_memory_dict[index] = p

    def multiply(_: object) -> None:
        ps = _orthogonal(p, [(x.shape[0], r) for x, r in zip(matrices, columns, strict=True)], epsilon)
        for x, left, right in zip(matrices, ps, qs, strict=True):
            right.copy_(x.t() @ left)
        all_reduce(q, group=group)
        q.div_(get_world_size(group))
        for x, left, right in zip(matrices, ps, qs, strict=True):
            x.copy_(left @ right.t())

    work: Any = all_reduce(p, group=group, async_op=True)
    return work.get_future().then(multiply)


def _orthogonal(flat: Tensor, shapes: list[tuple[int, int]], epsilon: float) -> list[Tensor]:
    """The matrices in a flat tensor, their columns made orthonormal: by QR on the CPU, also where they depend on each
    other, and by Gram and Schmidt on devices and in half precision.
    """
    parts = flat.split([math.prod(shape) for shape in shapes])
    matrices = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    for matrix in matrices:
        if matrix.device.type == "cpu" and matrix.dtype.itemsize > 2:
            matrix.copy_(qr(matrix)[0])
            continue
        for index in range(matrix.shape[1]):
            column, rest = matrix[:, index : index + 1], matrix[:, index + 1 :]
            column /= column.norm() + epsilon
            rest -= (column * rest).sum(0, keepdim=True) * column
    return matrices
