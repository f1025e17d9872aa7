"""Samples of modules that PyTorch's table does not have, in its form."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import long, nn, tensor
from torch.nn import functional
from torch.testing import make_tensor
from torch.testing._internal.common_modules import FunctionInput as Call
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput

# The arguments of constructors and the shapes of inputs.
SAMPLES: dict[str, list[tuple[Call, tuple[int, ...]]]] = {
    "Identity": [(Call(), (2, 3)), (Call(3, unused=1), ())],
    "Flatten": [(Call(), (2, 3, 4)), (Call(0, -2), (2, 3, 4)), (Call(-2), (2, 3, 0))],
    "Unflatten": [(Call(1, (2, 3)), (2, 6, 4)), (Call(-2, [2, -1]), (6, 4))],
    "Fold": [
        (Call((4, 5), 2), (2, 12, 12)),
        (Call((4, 5), (2, 3), dilation=(1, 2), padding=1, stride=(2, 1)), (6, 9)),
    ],
    "Unfold": [(Call(2), (2, 3, 4, 5)), (Call((2, 3), dilation=(1, 2), padding=1, stride=(2, 1)), (2, 3, 4))],
    "PixelShuffle": [(Call(2), (2, 8, 3, 2)), (Call(3), (9, 2, 2))],
    "PixelUnshuffle": [(Call(2), (2, 2, 6, 4)), (Call(3), (1, 3, 6))],
    "ChannelShuffle": [(Call(2), (2, 6, 3, 2)), (Call(3), (6, 3, 2))],
    "Upsample": [
        (Call(scale_factor=2), (1, 2, 3)),
        (Call((5, 4), mode="bilinear", align_corners=True), (1, 2, 3, 4)),
        (Call(scale_factor=(1.5, 2.5), mode="bicubic", recompute_scale_factor=True), (1, 2, 3, 4)),
        (Call(size=3, mode="trilinear"), (1, 2, 2, 3, 4)),
    ],
    "UpsamplingNearest2d": [(Call(scale_factor=2), (1, 2, 3, 4)), (Call(size=5), (1, 2, 3, 4))],
    "UpsamplingBilinear2d": [(Call(scale_factor=2), (1, 2, 3, 4)), (Call(size=(5, 2)), (1, 2, 3, 4))],
    "Dropout": [(Call(), (2, 3)), (Call(0.0), (2, 3)), (Call(1.0), (2, 3))],
    "Dropout1d": [(Call(0.3), (2, 3, 4)), (Call(0.3), (3, 4)), (Call(1.0), (3, 4))],
    "Dropout2d": [(Call(0.3), (2, 3, 4, 5)), (Call(0.0), (2, 3, 4, 5))],
    "Dropout3d": [(Call(0.3), (2, 3, 4, 5, 2)), (Call(0.3), (3, 4, 5, 2))],
    "AlphaDropout": [(Call(), (2, 3)), (Call(0.0), (2, 3))],
    "FeatureAlphaDropout": [(Call(0.3), (2, 3, 4)), (Call(1.0), (2, 3, 4))],
    **{
        f"Lazy{kind}Norm{rank}d": [(Call(*made), (4, 3, *range(2, 2 + rank))) for made in ((), (1e-3, 0.3, False))]
        for kind in ("Batch", "Instance")
        for rank in (1, 2, 3)
    },
    "Hardsigmoid": [(Call(), (2, 7)), (Call(), ())],
    "RReLU": [(Call(), (2, 7)), (Call(0.2, 0.2), (5,))],
    "LazyLinear": [(Call(4), (2, 3)), (Call(4, bias=False), (2, 1, 3))],
}
DIFFER = ("Dropout", "Norm", "RReLU")  # in training


def inputs(name: str, info: ModuleInfo, device: Any, dtype: Any, requires_grad: bool, training: bool) -> list[Any]:
    """The samples of a module."""
    make = partial(make_tensor, device=device, dtype=dtype, requires_grad=requires_grad)
    return [ModuleInput(made, Call(make(shape))) for made, shape in SAMPLES[name]]


def places(rank: int, info: ModuleInfo, device: Any, dtype: Any, requires_grad: bool, training: bool) -> list[Any]:
    """The samples of the modules that undo pools, which take the places that pools return."""
    made = []
    for stride, padding, lead in ((2, 0, (2, 3)), (1, 1, (2,))):
        x = make_tensor((*lead, *(6, 5, 4)[:rank]), device=device, dtype=dtype, requires_grad=requires_grad)
        pool = getattr(functional, f"max_pool{rank}d")
        found = pool(x, 3, stride, padding, return_indices=True)
        made.append(ModuleInput(Call(3, stride, padding), Call(*found, output_size=x.shape[-rank:])))
    return made


def pairs(info: ModuleInfo, device: Any, dtype: Any, requires_grad: bool, training: bool) -> list[Any]:
    """The samples of distances."""
    make = partial(make_tensor, device=device, dtype=dtype, requires_grad=requires_grad)
    shapes = [((3, 4), (3, 4)), ((2, 3, 4), (3, 4))]
    return [ModuleInput(made, Call(make(one), make(other))) for made in (Call(), Call(1)) for one, other in shapes]


def bags(info: ModuleInfo, device: Any, dtype: Any, requires_grad: bool, training: bool) -> list[Any]:
    """The samples of bags of rows; the weights of the rows tell the dtype of the table."""
    indices = make_tensor((7,), device=device, dtype=long, low=0, high=5)
    factors = make_tensor((7,), device=device, dtype=dtype, requires_grad=requires_grad)
    offsets = tensor([0, 3, 3, 7], device=device)
    ways = [{}, {"padding_idx": 2}, {"mode": "sum"}, {"mode": "max"}, {"max_norm": 1.0}]
    made = [ModuleInput(Call(5, 3, dtype=dtype, **how), Call(indices, offsets)) for how in ways]
    whole = Call(5, 3, mode="sum", include_last_offset=True, dtype=dtype)
    return [*made, ModuleInput(whole, Call(indices, offsets, factors))]


ADDED = [
    ModuleInfo(
        getattr(nn, name),
        module_inputs_func=partial(inputs, name),
        train_and_eval_differ=any(each in name for each in DIFFER),
    )
    for name in SAMPLES
]
ADDED += [ModuleInfo(each, module_inputs_func=pairs) for each in (nn.CosineSimilarity, nn.PairwiseDistance)]
ADDED.append(ModuleInfo(nn.EmbeddingBag, module_inputs_func=bags, supports_gradgrad=False))
ADDED += [ModuleInfo(getattr(nn, f"MaxUnpool{rank}d"), module_inputs_func=partial(places, rank)) for rank in (1, 2, 3)]
