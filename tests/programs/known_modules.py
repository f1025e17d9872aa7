"""Results of modules that differ and are meant to."""

from __future__ import annotations

from .kinds import ACCEPTED, REFUSED, VALUE, Known

MODULES: tuple[Known, ...] = (
    Known(
        "The order of strides of a layer's result",
        VALUE,
        r"^strides .*of y\d",
        "Results are in the usual order; PyTorch gives transposed views in places.",
        "torch.nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0].stride()",
        r"m\(|functional_call\(m",
    ),
    Known(
        "Gradients of resizing by a factor that is not the ratio of the sizes",
        VALUE,
        r"^grad's value of|^value \[\d+\] of g",
        "They are the gradients of what was computed. PyTorch goes back through `nearest` and `bicubic` as if an equal "
        "or a doubled size were the ratio, which the forward pass does not do.",
        "torch.nn.functional.interpolate(x, scale_factor=2.3).sum().backward()",
        "backward",
        r"nterpolate|Upsampl",
    ),
    Known(
        "Filtered pictures of width 1",
        VALUE,
        r"^value of",
        "They are filtered along both dimensions; PyTorch's rows of a result of width 1 are all the first one.",
        "torch.nn.functional.interpolate(x, (4, 1), mode='bilinear', antialias=True)",
        r"antialias=True",
    ),
    Known(
        "Gradients of a group norm of no element",
        VALUE,
        r"^value \[0\] of g\d",
        "A sum of nothing is 0; PyTorch multiplies it by the deviation of nothing, which is nan.",
        "torch.nn.GroupNorm(1, 3)(torch.ones(2, 3, 0)).sum().backward()",
        r"",
        r"GroupNorm\((.|\n)*[ (]0[,)]",
    ),
    Known(
        "An output padding that is too large for no example",
        REFUSED,
        r"output padding must be smaller than either stride or dilation",
        "It is refused as for any batch; PyTorch does not look at it where there is no example.",
        "torch.nn.ConvTranspose1d(1, 1, 2, output_padding=1)(torch.ones(0, 1, 3))",
    ),
    Known(
        "Windows and strides of LPPool as tuples",
        ACCEPTED,
        r"mul\(\): argument 'other' \(position 1\) must be Tensor, not tuple",
        "They are taken as other pooling layers take them; PyTorch multiplies by the tuple.",
        "torch.nn.LPPool1d(2, (2,))(x)",
    ),
)
