"""The kinds of difference that are meant, each with its reason. `docs/differences.md` is made from this table.

A kind is known by its outcome, by the statement that differed, and by what was said or seen there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import rounding

REFUSED, ACCEPTED, ERROR, VALUE = "refused here alone", "accepted here alone", "another error", "value differs"
LAYOUT, CRASH = "layout differs", "crash"


@dataclass(frozen=True)
class Known:
    """A kind: its outcome, what its statement and its words look like (regular expressions), and why it is so."""

    title: str
    outcome: str
    words: str
    reason: str
    example: str
    statement: str = ""
    program: str = ""


KNOWN: tuple[Known, ...] = (
    Known(
        "Results that rounding decides",
        VALUE,
        rounding.DECIDES,
        "The difference of nearly equal numbers, a quotient by nearly 0, a number cut to an integer next to it: the "
        "value moves as far in PyTorch itself if its numbers are changed by an ulp, and both agree in float64.",
        "torch.optim.Adam([x], weight_decay=0.1).step()  # where the gradient is about -0.1 x",
    ),
    Known(
        "Complex tensors beyond arithmetic",
        REFUSED,
        r"not implemented for '(Complex\w+|complex\d+)'|complex dtypes are on the CPU only",
        "Complex dtypes are there for arithmetic and reductions on the CPU; Triton has none. `logaddexp` and random "
        "numbers are not computed for them.",
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
        "Gradients after a step",
        VALUE,
        r"grad's value of",
        "A step leaves gradients as they are. PyTorch's `foreach=True` with Nesterov's momentum adds that to them.",
        "torch.optim.SGD([x], momentum=0.9, nesterov=True, foreach=True).step()",
        r"opt\.step",
    ),
    Known(
        "Other shapes or dtypes under `.data` of a tensor in a graph",
        REFUSED,
        r"expand\(|invalid gradient|invalid for input of size|doesn't match the broadcast shape|at non-singleton",
        "The graph was recorded for what the tensor was. PyTorch sums or casts gradients to the first shape and dtype "
        "where that is possible.",
        "y = x * 2; x.data = torch.ones(5); y.sum().backward()",
        "backward",
        r"\.data = ",
    ),
    Known(
        "Other shapes or dtypes under `.data` of a tensor in a graph",
        VALUE,
        r"^grad('s \w+)? of",
        "As above: the gradient has the shape and dtype that the tensor has now, in PyTorch those of its first "
        "backward pass.",
        "y = x * 2; x.data = torch.ones(5); y.sum().backward()",
        "backward",
        r"\.data = ",
    ),
    Known(
        "The offset of a view without elements",
        VALUE,
        "^result of",
        "NumPy does not say where in memory an empty array begins, and nothing is there.",
        "x[3:3].storage_offset()",
        r"storage_offset\(\)",
    ),
    Known(
        "The stride of a result",
        VALUE,
        "^result",
        'See "The order of strides of a result" below; the stride of a dimension of size 1 says nothing.',
        "(torch.ones(3, 1).t() * 2).stride()",
        r"stride\(",
    ),
    Known(
        "The bits of rounded results",
        VALUE,
        "^value of",
        "Functions are rounded as NumPy rounds them, which is not always the same last bit.",
        "x.asinh_().view(torch.int32)",
        program=r"\b{name} = .*\.view\(torch\.(u?int\d+|bool|complex\d+|b?float\d+)\)",
    ),
    Known(
        "Sums that overflow on the way",
        VALUE,
        r"(?s)\b(nan|inf)\b",
        "The order of a sum is nobody's promise: of -inf and twice 3.4e38 it is -inf or nan. A variance is infinite if "
        "its squares are, also where PyTorch's CPU adds them up in float64.",
        "torch.tensor([[-torch.inf], [3.4e38]]).expand(2, 3).mean()",
        r"\b(sum|mean|logsumexp|cumsum|var|std|norm|linear|mm|bmm|matmul|einsum|mv|dot|addmm)\w*\(|@",
        r"3\.4e38|65504|2\*\*(6[4-9]|7\d)",
    ),
    Known(
        "The gradients of hardtanh and elu of nan",
        VALUE,
        r"grad's value of",
        "hardtanh's is the incoming gradient, elu's is nan. PyTorch's depend on how many elements there are.",
        "torch.nn.functional.hardtanh(x).sum().backward()",
        program=r"(?s)(nan.*(hardtanh|relu6|elu)|(hardtanh|relu6|elu).*nan)",
    ),
    Known(
        "Roots of -0.0 in half precision",
        VALUE,
        "inf|-0.0",
        "x ** 0.5 is sqrt(x) in every dtype, so -0.0 has the root -0.0. PyTorch's is 0.0 for float16 on the CPU alone.",
        "torch.tensor(-0.0, dtype=torch.float16) ** -0.5",
        r"\*\*=? -?0\.5|pow_?\(|r?sqrt_?\(",
        "float16",
    ),
    Known(
        "addcdiv's gradient by a divisor in half precision",
        VALUE,
        r"grad's value of",
        "It is computed in the result's dtype; PyTorch rounds value / tensor2 to tensor2's.",
        "torch.addcdiv(x, y, z.half()).sum().backward()  # float32 x and y",
        program=r"addcdiv\w*\(.*(b?float16)",
    ),
    Known(
        "alpha=-2**63",
        VALUE,
        "",
        "sub(alpha=) of floating tensors subtracts alpha times the other. PyTorch negates the alpha -2**63 in int64, "
        "where it stays -2**63.",
        "torch.ones(2).sub(torch.ones(2), alpha=-2**63)",
        r"sub\w*\(.*alpha=-2\*\*63",
    ),
    Known(
        "Integers that require grad",
        VALUE,
        "^requires_grad of",
        "They do not exist here. In PyTorch an integer tensor requires grad after one that does was written to none "
        "of its elements.",
        "x = torch.tensor([1, 2]); x[2:] = torch.tensor(1.0, requires_grad=True)",
        r"\] = |_\(",
    ),
    Known(
        "Memory that the machine does not have",
        CRASH,
        "^MemoryError",
        "It is Python's MemoryError; PyTorch raises a RuntimeError.",
        "torch.arange(2**42)",
    ),
    Known(
        "Lists that are not rectangular behind an empty one",
        REFUSED,
        "not a sequence|expected sequence of length 0",
        "They are refused as others are. PyTorch drops what stands beside the empty list.",
        "torch.tensor([[], [1.0]])",
    ),
    Known(
        "out= that is the operand",
        VALUE,
        "^value of",
        "The result is that without out=. Some reductions of PyTorch write to out before they read.",
        "torch.nansum(x, dim=(), out=x)",
        r"out=x\d+\)",
    ),
    Known(
        "The gradient of a power of False",
        VALUE,
        "grad's value of",
        "It is 0, as for the exponent 0; PyTorch's is nan at 0.",
        "y = torch.zeros(1, requires_grad=True) * 2; y **= False; y.sum().backward()",
        program=r"(\*\*=?|pow\w*\(.*) ?False",
    ),
    Known(
        "The gradient of sgn",
        VALUE,
        "grad's value of",
        "It is zero, and zero times nan or inf is nan. PyTorch does not compute further with it.",
        "torch.tensor(-1.0, requires_grad=True).sqrt().sgn().backward()",
        program=r"\bsgn_?\(",
    ),
    Known(
        "Trigonometric functions of huge numbers",
        VALUE,
        "^(value|result|grad's value)",
        "Above 1e20 neighbouring numbers have unrelated sines.",
        "torch.tensor([3e30]).tan()",
        program=r"(?s)\d{17}|e(20|30|38|300)\b.*\b(sin|cos|tan|sinc)_?\(",
    ),
    Known(
        "Writing a tensor into itself by indices",
        VALUE,
        "^value of",
        "What is written is what the tensor was before; PyTorch reads elements that it has written already.",
        "x[:, torch.tensor([1, 0])] = x",
        r"^(x\d+)\[.*torch\.tensor.*\] = \1\b",
    ),
    Known(
        "Integers of linspace",
        VALUE,
        "^value of",
        "They are the exact numbers cut to integers; PyTorch adds up a rounded step, and 2 becomes 1.",
        "torch.linspace(-3, 7, 7, dtype=torch.int64)[3]",
        r"linspace\(.*dtype=torch\.u?int",
    ),
    Known(
        "Infinity as an integer",
        VALUE,
        "^value of",
        "It is the integer that NumPy makes of it. What a cast of infinity gives is not defined, in PyTorch either.",
        "torch.tensor([-torch.inf], dtype=torch.float16).sum(dtype=torch.int64)",
        r"dtype=torch\.u?int",
        r"\binf\b",
    ),
    Known(
        "Uninitialized memory",
        VALUE,
        "^value of",
        "What a new tensor holds that nothing was written to differs from run to run.",
        "torch.Tensor(3)",
        r"torch\.Tensor\(\d",
    ),
    Known(
        "Changes through .data of what a gradient reads",
        VALUE,
        "^grad's value of",
        "No version counts them, so the gradient is wrong in either library; which numbers it reads differs.",
        "y.exp_(); y.data.zero_(); y.sum().backward()",
        program=r"\.data\b",
    ),
    Known(
        "Booleans that are neither 0 nor 1",
        VALUE,
        "",
        "Other bits as booleans are no numbers: what is computed of them is not defined.",
        "torch.ones(3).view(torch.bool).sum()",
        program=r"view\(torch\.bool\)",
    ),
    Known(
        "The gradient of a norm of one infinite number",
        VALUE,
        "^grad's value of",
        "It is the sign, as for every number; PyTorch's is nan.",
        "torch.tensor([torch.inf], requires_grad=True).norm().backward()",
        program=r"(?s)(\binf\b.*norm\w*\(|norm\w*\(.*\binf\b)",
    ),
    Known(
        "The gradient of a product with infinite factors",
        VALUE,
        "^grad's value of",
        "It is the result divided by the factor, nan for inf / inf, as PyTorch's is for tensors without a zero. With "
        "one anywhere PyTorch multiplies the other factors.",
        "torch.tensor([torch.inf, 0.0], requires_grad=True).prod().backward()",
        program=r"(?s)\binf\b.*prod\(",
    ),
    Known(
        "Random numbers",
        VALUE,
        "^value of",
        "They are others; their zeros have other signs.",
        "1 / (torch.randn(3) * 0)",
        program=r"randn\w*\(.*\* 0",
    ),
    Known(
        "The order of equal elements in topk",
        VALUE,
        r"^value \[1\] of",
        "They come in the order of their indices; PyTorch's order is not defined.",
        "torch.topk(torch.zeros(7), 5)",
        r"topk\(",
    ),
    Known(
        "The order of strides of sum_to_size",
        VALUE,
        "^strides of",
        "A sum that has nothing to add keeps the order of its operand's dimensions.",
        "torch.ones(3, 3, 3).transpose(-1, -2).sum_to_size(3, 3).stride()",
        r"sum_to_size\(",
    ),
    Known(
        "Huge factors",
        VALUE,
        "value of",
        "What cancels or overflows between a product and a sum depends on whether the two are rounded once or twice.",
        "x.index_add(0, index, y, alpha=1e10)",
        program=r"(alpha|beta|value)=-?(1e10|2\*\*\d\d)",
    ),
    Known(
        "Bits of nan",
        VALUE,
        "^value of",
        "A nan that is computed may have any of its bit patterns.",
        "x.view(torch.bfloat16).div_(0.25)  # int64 x, some of whose bits are those of nan",
        program=r"\.view\(torch\.b?float\d+\)",
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
        "A state that was loaded",
        VALUE,
        r"^value (\[\d+\] )+of f3",
        "An optimizer that loads a state has step counts of its own; PyTorch's counts on in the tensors of the other.",
        "second.load_state_dict(first.state_dict()); second.step()",
        r"opt\.step",
    ),
    Known(
        "Complex numbers with an infinite part",
        VALUE,
        r"(nan|inf)[+-]?\S*j",
        "Which parts of a product, quotient or sum are then infinite and which nan is C's affair: NumPy's and "
        "PyTorch's rules differ, and a real number has no imaginary part here, where PyTorch gives it 0.",
        "torch.tensor([1 + 2j]) + float('inf')",
    ),
    Known(
        "The order of equal elements",
        VALUE,
        r"^value \[1\] of",
        "`sort` and `argsort` keep the order of equal elements; PyTorch promises that for `stable=True` only.",
        "torch.tensor([[1, 1]]).sort(descending=True)",
        r"sort\(",
    ),
    Known(
        "gelu of infinity",
        VALUE,
        r"torch: .*nan",
        "gelu(inf) is inf; PyTorch's is nan where it multiplies infinity by a zero.",
        "torch.nn.functional.gelu(torch.tensor(float('-inf')))",
        r"gelu\(",
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
        "The one that is kept of values for one place",
        VALUE,
        r"^value (\[\d+\] )*of",
        "PyTorch leaves it open where coordinates repeat, and goes in the order of the values in memory. Here it is "
        "the last one on the CPU.",
        "x[torch.tensor([0, 0])] = y.t()",
        r"^\w+\[.*torch\.tensor\(.*\] = .*\.(transpose|permute)\(",
    ),
    Known(
        "The mean beside a variance",
        VALUE,
        r"(?s)inf.*torch: .*nan",
        "It is `mean`'s, and infinite where one element is; PyTorch's comes out of the formula for the variance.",
        "torch.var_mean(torch.tensor([1.0, torch.inf, 2.0]))",
        r"(std|var)_mean\(",
    ),
    Known(
        "Products in half precision",
        VALUE,
        r"inf",
        "They are computed in float32 and rounded once; PyTorch rounds after each factor on the CPU, and overflows.",
        "torch.tensor([65504.0, 2.0, 0.25], dtype=torch.float16).prod()",
        r"\bprod\(",
        r"float16",
    ),
    Known(
        "Something else in place of a tensor",
        CRASH,
        r"^AttributeError: .*has no attribute",
        "Functions that take less than a microsecond do not look whether their first argument is a tensor: Python's "
        "AttributeError says that it is none, where PyTorch raises TypeError.",
        "torch.flatten(None)",
    ),
    Known(
        "Functions of numbers alone",
        REFUSED,
        r"at least one argument must be a Tensor",
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
        "Conjugates are copies",
        VALUE,
        "^(value|strides) of",
        "The conjugate of a complex tensor is computed. PyTorch marks a view of the same memory as conjugated.",
        "z.conj().mul_(2)",
        r"_\(|=|conj",
        r"conj",
    ),
    Known(
        "complex32",
        VALUE,
        r"complex64'?\n *torch: .*complex32",
        "NumPy has no such dtype: float16 with a complex number is complex64.",
        "torch.ones(2, dtype=torch.float16) * 1j",
    ),
    Known(
        "The order of strides of a result",
        LAYOUT,
        "",
        "Results are in the usual order, whatever the order of their operands; PyTorch gives its results the "
        "order of the first operand, and that of `nonzero`, of indexing and of copies by rules of their own. A "
        "view's strides are the same in both.",
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
        r"only supports floating-point|tensor is not supported",
        "One kernel is compiled for every dtype that an operator's rule takes: uint16, uint32 and uint64 among them.",
        "torch.ones(2, dtype=torch.uint16) + 1",
    ),
    Known(
        "Gradients that PyTorch does not have",
        ACCEPTED,
        r"derivative for .* is not implemented",
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
        "A learning rate in a tensor with `foreach=True`",
        ACCEPTED,
        r"lr as a Tensor is not supported for capturable=False and foreach=True",
        "All parameters are changed in one launch anyway, and it reads the rate where it is.",
        "torch.optim.Adam([x], lr=torch.tensor(0.1), foreach=True)",
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
