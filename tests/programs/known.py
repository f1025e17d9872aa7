"""The kinds of difference that are meant, each with its reason. `docs/differences.md` is made from this table.

A kind is known by its outcome, by the statement that differed, and by what was said or seen there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .kinds import ACCEPTED, CRASH, ERROR, LAYOUT, REFUSED, VALUE, Known
from .known_gradients import GRADIENTS
from .known_linear import LINEAR
from .known_modules import MODULES
from .known_transforms import TRANSFORMS
from .known_values import VALUES

__all__ = ["ACCEPTED", "CRASH", "ERROR", "KNOWN", "LAYOUT", "REFUSED", "VALUE", "Known", "entry"]

KNOWN: tuple[Known, ...] = (
    *VALUES,
    *GRADIENTS,
    *LINEAR,
    *MODULES,
    *TRANSFORMS,
    Known(
        "Complex tensors beyond arithmetic",
        REFUSED,
        r"not implemented for '(Complex\w+|complex\d+)'|complex tensors have no kernel",
        "Complex dtypes are there for arithmetic, sums, products and convolutions. Other layers, `logaddexp` and "
        "random numbers in place are not computed for them.",
        "torch.logaddexp(x, torch.ones(3, dtype=torch.complex64))",
    ),
    Known(
        "Products and powers of booleans",
        REFUSED,
        r"\"(pow|square|matmul|linear|reciprocal)\" not implemented for 'Bool'",
        "A product of booleans that is a boolean hides a missing cast; PyTorch refuses it in some of its shapes only.",
        "torch.ones(2, 2, dtype=torch.bool) @ torch.ones(2, 2, dtype=torch.bool)",
    ),
    Known(
        "nan as an option of an optimizer or schedule",
        REFUSED,
        r"Invalid .*: nan|multiplicative factor expected to be",
        "Every comparison with nan is false, so PyTorch's checks let it pass, and the first step makes parameters nan.",
        "torch.optim.SGD([x], lr=float('nan'))",
    ),
    Known(
        "A state of other shapes than the parameters",
        REFUSED,
        r"loaded state dict has .* for parameter \d+, which has shape",
        "PyTorch loads it, and the next step fails or is wrong.",
        "optimizer.load_state_dict(of_another_model)",
    ),
    Known(
        "Other shapes or dtypes under `.data` of a tensor in a graph",
        REFUSED,
        r"expand\(|invalid gradient|invalid for input of size|doesn't match the broadcast shape|at non-singleton",
        "The graph was recorded for what the tensor was. PyTorch sums or casts gradients to the first shape and dtype "
        "where that is possible.",
        "y = x * 2; x.data = torch.ones(5); y.sum().backward()",
        "backward",
        r"\.data = |(squeeze|transpose|\bt|swapaxes|swapdims)_\(",
    ),
    Known(
        "Lists that are not rectangular behind an empty one",
        REFUSED,
        "not a sequence|expected sequence of length 0",
        "They are refused as others are. PyTorch drops what stands beside the empty list.",
        "torch.tensor([[], [1.0]])",
    ),
    Known(
        "Softmax in an integer dtype",
        REFUSED,
        r"softmax_lastdim_kernel_impl\" not implemented for",
        "The shares are all 0; PyTorch refuses it for some shapes only.",
        "x.softmax(0, dtype=torch.int32)",
        "softmax",
    ),
    Known(
        "An index out of bounds of take_along_dim",
        REFUSED,
        r"index -?\d+ is out of bounds for dimension \d+ with size",
        "It reads no element. PyTorch takes the remainder on the CPU and reads another one.",
        "x.take_along_dim(torch.tensor([len(x)]), 0)",
        r"take_along_dim\(",
    ),
    Known(
        "Triangles of tensors that repeat elements in memory",
        REFUSED,
        r"more than one element of the written-to tensor",
        "Their elements would depend on an order of writing; PyTorch's other changes in place refuse them, too.",
        "torch.ones(1, 2).expand(2, 2).tril_()",
        r"tri[lu]_\(",
    ),
    Known(
        "Places to split at that are on a device",
        REFUSED,
        r"tensor_indices_or_sections to be on cpu",
        "PyTorch refuses them, too; its samples have them on the CPU beside tensors on a device.",
        "torch.tensor_split(x, torch.tensor([1, 2], device='cuda'))",
    ),
    Known(
        "Functions of numbers alone",
        REFUSED,
        r"at least one argument must be a Tensor|add\(\): argument 'input' \(position 1\) must be Tensor, not float",
        "Python computes with numbers.",
        "torch.add(1.5, 1)",
    ),
    Known(
        "Random numbers in integer dtypes",
        REFUSED,
        r'"\w*(rand|normal|uniform)\w*" not implemented for',
        "A fraction of 1 is 0 in them. PyTorch looks at the dtype only where there are elements to draw.",
        "torch.randn_like(torch.zeros(0), dtype=torch.int64)",
    ),
    Known(
        "The order of strides of a result",
        LAYOUT,
        "",
        "Results are in the usual order, whatever the order of their operands, but for channels-last ones of "
        "elementwise operators; PyTorch gives its results the order of the first operand, and that of `nonzero`, of "
        "indexing and of copies by rules of their own. A view's strides are the same in both.",
        "(torch.ones(2, 3).t() * 2).stride()",
    ),
    Known(
        "Numbers in place of tensors",
        ACCEPTED,
        r"must be Tensor, not (int|float|bool|complex)|lerp_?\(\) received an invalid combination",
        "Every elementwise operator takes a number for each operand but the first.",
        "torch.maximum(x, 0)",
    ),
    Known(
        "Dtypes for which PyTorch has no kernel",
        ACCEPTED,
        r"not implemented for '|not supported for|inputs not supported|does not support|not support dtype|"
        r"only supports floating-point|tensor is not supported|uint64 types is not supported",
        "One kernel is compiled for every dtype that an operator's rule takes: uint16, uint32 and uint64 among them.",
        "torch.ones(2, dtype=torch.uint16) + 1",
    ),
    Known(
        "Distributions in PyTorch's own way",
        ACCEPTED,
        r"cannot sample n_sample <= 0|cannot reshape tensor of 0 elements|has no attribute '_binomial'|"
        r"The shape of the mask|shape '\[.*\]' is invalid for input of size|(Float|Double) did not match|a second time|"
        r"forward_shape length|of the distribution Uniform|division or modulo by zero",
        "Samples and densities of no elements, divergences of parameters that broadcast, entropies of an expanded "
        "Multinomial and doubles in a GeneralizedPareto are computed like all others.",
        "torch.distributions.Categorical(torch.ones(3)).sample((0,))",
        program=r"torch\.distributions",
    ),
    Known(
        "Slices that go backwards",
        ACCEPTED,
        "step must be greater than zero",
        "NumPy and the array API standard have them, and libraries use them. The result is a copy.",
        "x[::-1]",
    ),
    Known(
        "The imaginary part of a real tensor",
        ACCEPTED,
        "imag is not implemented for tensors with non-complex dtypes",
        "As an attribute it is zero, as NumPy's: libraries ask every array for it. `torch.imag(x)` raises.",
        "x.imag",
        r"\.imag",
    ),
    Known(
        "A bias without a weight in native_layer_norm",
        ACCEPTED,
        "Expected a proper Tensor but got None",
        "PyTorch's backward pass multiplies by the weight that is not there.",
        "torch.native_layer_norm(x, [3], None, torch.ones(3), 1e-5)",
        "native_layer_norm",
    ),
    Known(
        "Gradients that PyTorch does not have",
        ACCEPTED,
        r"derivative for .* is not implemented|out=\.\.\. arguments don't support automatic differentiation",
        "Every operator with a derivative has its gradient; that of a floor is zero.",
        "(x // 2).sum().backward()",
    ),
    Known(
        "More forms of a call",
        ACCEPTED,
        r"received an invalid combination of arguments|takes \d+ positional arguments?|missing \d+ required|"
        r"got an unexpected keyword argument|must be tuple of ints, not int",
        "A function and its method are one: sizes and dims may be passed one by one, and defaults left out.",
        "torch.reshape(x, 3, 2)",
    ),
    Known(
        "Whole numbers as flags",
        ACCEPTED,
        r"must be bool, not (int|NoneType|float)",
        "A flag is anything that Python can judge.",
        "x.sum(0, keepdim=1)",
    ),
    Known(
        "`clip_grad_value_` without gradients",
        ACCEPTED,
        r"nested_tensorlist",
        "It does nothing, as `clip_grad_norm_` does in both; PyTorch fails with an internal error.",
        "torch.nn.utils.clip_grad_value_([x], 1.0)",
        "clip_grad_value_",
    ),
    Known(
        "`capturable` on the CPU",
        ACCEPTED,
        r"If capturable=True, params and state_steps must be on supported devices",
        "It only says where step counts are kept, and there is nothing to capture on the CPU.",
        "torch.optim.Adam([x], capturable=True).step()",
    ),
    Known(
        "True as a weight decay or momentum",
        ACCEPTED,
        r"Boolean alpha only supported for Boolean results",
        "It is the number 1, as for the other options.",
        "torch.optim.SGD([x], weight_decay=True)",
        r"\.step\(",
    ),
    Known(
        "Changing one of several views that one call returned",
        ACCEPTED,
        r"is the output of a function that returns multiple views",
        "Their gradients are computed as for any view.",
        "x.unbind()[0].mul_(2)",
    ),
    Known(
        "Writing a tensor into a part of itself",
        ACCEPTED,
        r"some elements of the input tensor and the written-to tensor refer to a single memory",
        "The result is computed before anything is written, so it does not depend on an order.",
        "x[1:] = x[:-1]",
    ),
)


def entry(found: Any, statements: Sequence[str] = ()) -> Known | None:
    """The entry that a difference is of, which was found by the last of these statements."""
    for kind in KNOWN:
        if kind.outcome == found.outcome and re.search(kind.words, found.detail):
            program = kind.program.replace("{name}", found.detail.splitlines()[0].rpartition(" ")[2])
            if re.search(kind.statement, found.statement) and re.search(program, "\n".join(statements)):
                return kind
    return None
