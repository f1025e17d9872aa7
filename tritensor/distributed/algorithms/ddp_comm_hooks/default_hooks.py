"""Communication hooks that average gradients, as they are or in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....tensors import Tensor
from ....types import dtypes
from ...collectives import all_reduce
from ...futures import Future
from ...grad_bucket import GradBucket
from ...groups import get_world_size
from ...process_group import ProcessGroup

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook"]
__all__ += ["fp16_compress_wrapper"]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def averaged(group: ProcessGroup | None, x: Tensor) -> Future[Tensor]:
    """A future with the tensor, which is averaged in place."""
    x.div_(get_world_size(group))  # before the sum, which could overflow
    work: Any = all_reduce(x, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def compressed(dtype: dtypes.dtype, group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket in another dtype."""
    buffer = bucket.buffer()
    return averaged(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients, as without a hook: `model.register_comm_hook(None, allreduce_hook)`."""
    return averaged(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in float16, and return them in their own dtype."""
    return compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in bfloat16, and return them in their own dtype."""
    return compressed(dtypes.bfloat16, process_group, bucket)


def _wrapped(hook: Hook, dtype: dtypes.dtype) -> Hook:
    def wrapper(state: object, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda future: buffer.copy_(future.value()))

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands the gradients to another hook in float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands the gradients to another hook in bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)
