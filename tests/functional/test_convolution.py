"""Convolutions on the CPU: known values, the pieces against the reference, gradients, refusals."""

from __future__ import annotations

import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.window import convolution as family
from tritensor.kernels.window import convolution_reference as host
from tritensor.kernels.window.convolution import convolution, convolution_transposed, convolution_weight
from tritensor.kernels.window.geometry import forward_size, grouped, last
from tritensor.nn import functional as F

ONE, TWO, THREE = (
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [[1.0, 2.0], [3.0, 4.0]],
    [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]],
)


def test_known_values() -> None:
    x, w = torch.tensor([[ONE]]), torch.tensor([[[1.0, 0.0, -1.0]]])
    assert torch.conv1d(x, w).tolist() == [[[-2.0, -2.0, -2.0]]]
    assert torch.conv1d(x, w, torch.tensor([1.0]), stride=2, padding=1).tolist() == [[[-1.0, -1.0, 5.0]]]
    assert torch.conv1d(x, w, dilation=2).tolist() == [[[-4.0]]]
    assert torch.conv1d(x, torch.tensor([[[1.0, 2.0]]]), padding="same").tolist() == [[[5.0, 8.0, 11.0, 14.0, 5.0]]]
    assert torch.conv1d(x[0], w, padding="valid").tolist() == [[-2.0, -2.0, -2.0]]
    y = torch.conv_transpose1d(torch.tensor([[[1.0, 2.0]]]), w, stride=2, output_padding=1)
    assert y.tolist() == [[[1.0, 0.0, 1.0, 0.0, -2.0, 0.0]]]
    image = torch.tensor([[TWO]])
    assert torch.conv2d(image, torch.ones(1, 1, 2, 2)).tolist() == [[[[10.0]]]]
    assert torch.conv_transpose2d(image, torch.ones(1, 1, 2, 1)).tolist() == [[[[1.0, 2.0], [4.0, 6.0], [3.0, 4.0]]]]
    assert torch.conv3d(torch.tensor([[THREE]]), torch.ones(1, 1, 2, 2, 2)).item() == 36.0
    assert torch.conv_transpose3d(torch.ones(1, 1, 1, 1, 1), torch.tensor([[THREE]])).tolist() == [[THREE]]
    two = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert torch.conv1d(two, torch.tensor([[[1.0]], [[10.0]]]), groups=2).tolist() == [[[1.0, 2.0], [30.0, 40.0]]]
    assert torch.conv1d(torch.tensor([[[1, 2, 3]]]), torch.tensor([[[1, 1]]])).tolist() == [[[3, 5]]]


def test_weights_that_are_more_than_their_products_are_multiplied_where_they_lie() -> None:
    """A transposed convolution of small images with many channels, with bias and activation."""
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(1, 512, 2, 3)), rng.normal(size=(512, 64, 3, 3)), rng.normal(size=64)
    assert host.is_spread(x[:, None], w[None], x.dtype)
    steps = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 1}
    wanted = plain_convolution_transposed(x, w, b, **steps, size=(4, 7))
    given = {**steps, "output_padding": (1, 0)}
    found = F.conv_transpose2d(*map(torch.from_numpy, (x, w, b)), **given)
    shown(found, wanted, steps)
    activated = F.conv_transpose2d(*map(torch.from_numpy, (x, w, b)), **given, activation="relu")
    shown(activated, np.maximum(wanted, 0), steps)


def test_an_activation_is_applied_with_and_without_gradients() -> None:
    x, w = torch.tensor([[ONE]]), torch.tensor([[[-1.0, 1.0]]])
    for needs in (False, True):
        x.requires_grad = needs
        assert F.conv1d(x, -w, activation="relu").tolist() == [[[0.0] * 4]]
        assert F.conv1d(x, w, activation="relu").tolist() == [[[1.0] * 4]]
        assert F.conv_transpose1d(x, w, activation="relu").tolist() == [[[0.0] * 5 + [5.0]]]
    with pytest.raises(TypeError, match="activation must name an operator"):
        F.conv1d(x, w, activation="rolu")
    geometry = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1, "size": (4,)}
    with pytest.raises(RuntimeError, match="an activation inside the operator has no gradient"):
        convolution(x, w, activation="relu", **geometry)


def shifted(
    x: np.ndarray,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Iterator[tuple[Any, np.ndarray]]:
    """For each tap its index and the elements of x, in zeros, that it is multiplied with; first the x in zeros."""
    ends = [
        max((count - 1) * step + (taps - 1) * reach + 1, before + each)
        for count, taps, step, before, reach, each in zip(
            size, kernel, stride, padding, dilation, x.shape[3:], strict=True
        )
    ]
    padded = np.zeros((*x.shape[:3], *ends), x.dtype)
    inner = padded[last([slice(before, before + each) for before, each in zip(padding, x.shape[3:], strict=True)])]
    inner[...] = x
    yield None, inner
    for tap in np.ndindex(*kernel):
        along = zip(tap, dilation, size, stride, strict=True)
        key = [slice(at * reach, at * reach + (count - 1) * step + 1, step) for at, reach, count, step in along]
        yield (..., *tap), padded[last(key if 0 not in size else [slice(0)] * len(size))]


def plain_convolution(
    input: Any, weight: Any, bias: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: Any, size: Any
) -> np.ndarray:
    """The sums of the products of a kernel and what it lies on, at each place, and the bias of each channel."""
    weight = weight.reshape(groups, -1, *weight.shape[1:])
    out = np.zeros((len(input), groups, weight.shape[1], *size), input.dtype)
    for tap, x in shifted(grouped(input, groups), size, weight.shape[3:], stride, padding, dilation):
        if tap is not None:
            out += np.einsum("ngc...,grc->ngr...", x, weight[tap])
    return with_bias(out.reshape(len(input), -1, *size), bias)


def plain_convolution_transposed(
    input: Any, weight: Any, bias: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: Any, size: Any
) -> np.ndarray:
    """The sums of a kernel multiplied by each element of the input, at its place, and the bias of each channel."""
    y, weight = grouped(input, groups), weight.reshape(groups, -1, *weight.shape[1:])
    x = np.zeros((len(input), groups, weight.shape[2], *size), input.dtype)
    (_, inner), *rest = shifted(x, input.shape[2:], weight.shape[3:], stride, padding, dilation)
    for tap, place in rest:
        place += np.einsum("ngr...,grc->ngc...", y, weight[tap])
    return with_bias(inner.reshape(len(input), -1, *size), bias)


def with_bias(out: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.ndim - 2))


def plain_convolution_weight(
    input: Any, result: Any, *, stride: Any, padding: Any, dilation: Any, groups: Any, size: Any
) -> np.ndarray:
    """The sums of the products of all results and what each element of the kernel lies on for them."""
    y, x = grouped(result, groups), grouped(input, groups)
    weight = np.zeros((groups, y.shape[2], x.shape[2], *size), input.dtype)
    for tap, place in shifted(x, result.shape[2:], size, stride, padding, dilation):
        if tap is not None:
            weight[tap] = np.einsum("ngrp,ngcp->grc", y.reshape(*y.shape[:3], -1), place.reshape(*x.shape[:3], -1))
    return weight.reshape(-1, *weight.shape[2:])


PLAIN = {
    "convolution": plain_convolution,
    "convolution_transposed": plain_convolution_transposed,
    "convolution_weight": plain_convolution_weight,
}


def shown(x: Any, wanted: np.ndarray, case: Any) -> None:
    assert x.shape == wanted.shape
    # halves are rounded once here, and at each step in the reference of halves
    np.testing.assert_allclose(x.double().numpy(), wanted.astype(np.float64), rtol=1e-9, atol=1e-9, err_msg=str(case))


def in_order(x: np.ndarray, last: bool) -> Any:
    """The array as a tensor, its channels innermost with `last`."""
    return torch.from_numpy(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if last else x)


@pytest.mark.parametrize("seed", range(8))
def test_pieces_give_what_the_reference_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random shapes, layouts and sizes of pieces, of all three sums."""
    rng = np.random.default_rng(seed)
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    done = 0
    while done < 12:
        rank, groups, rows, channels = pick(1, 2, 2, 3), pick(1, 1, 2, 3), pick(1, 2, 40), pick(1, 2, 5)
        sizes = tuple([int(pick(1, 4, 7, 12)) for _ in range(rank)])
        kernel = tuple([int(pick(1, 2, 3)) for _ in range(rank)])
        geometry = [tuple([int(pick(*of)) for _ in range(rank)]) for of in ((1, 1, 2, 3), (0, 1, 2), (1, 1, 2, 4))]
        if pick(*range(5)) == 0:
            kernel, geometry = (1,) * rank, [(1,) * rank, (0,) * rank, (1,) * rank]
        size = tuple([forward_size(*each) for each in zip(sizes, kernel, *geometry, strict=True)])
        if min(size) < 1:
            continue
        for name, values in {
            "CACHE": (1 << 9, 1 << 13, 1 << 19),
            "_LEAST": (1, 16),
            "_WORTH": (1, 1 << 9),
            "_ROWS": (1, 8),
            "_WEIGHTS": (8, 1152),
            "_SINGLE": (1 << 5, 1 << 17),
            "_TILE": (2, 4096),
        }.items():
            monkeypatch.setattr(host, name, pick(*values))
        monkeypatch.setattr(host, "_planned", host._Correlation)
        images, last = pick(1, 2, 5), bool(pick(0, 1))
        x, y = rng.normal(size=(images, groups * channels, *sizes)), rng.normal(size=(images, groups * rows, *size))
        w = rng.normal(size=(groups * rows, channels, *kernel))
        metadata = dict(zip(("stride", "padding", "dilation"), geometry, strict=True)) | {"groups": groups}
        for sum, operands, wanted in (
            (convolution, (x, w, y[0, :, *[0] * rank]), size),
            (convolution_transposed, (y, w, x[0, :, *[0] * rank]), sizes),
            (convolution_weight, (x, y), kernel),
        ):
            tensors = [in_order(each, last) if each.ndim > 1 else torch.from_numpy(each.copy()) for each in operands]
            found = sum(*tensors, **metadata, size=wanted)
            shown(
                found, PLAIN[sum.name](*operands, **metadata, size=wanted), (sum.name, last, metadata, x.shape, w.shape)
            )
        done += 1


def test_depthwise_weights_of_what_is_not_finite() -> None:
    """What lies between rows is multiplied with zeros, and does not count even where it is infinite."""
    x, y = (np.random.default_rng(seed).normal(size=(2, 3, 5, 6)) for seed in range(2))
    x[0, 1, 2, 5], x[1, 2, 0, 0] = np.inf, np.nan
    metadata: dict[str, Any] = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 3, "size": (3, 3)}
    found = convolution_weight(torch.from_numpy(x), torch.from_numpy(y), **metadata)
    np.testing.assert_allclose(found.numpy(), plain_convolution_weight(x, y, **metadata), rtol=1e-9, atol=1e-9)
    assert np.isfinite(found.numpy()[0]).all() and np.isfinite(found.numpy()[1, 0, :, 0]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_are_summed_in_float32(dtype: Any) -> None:
    torch.manual_seed(0)
    x, w, b = (torch.randn(*shape).to(dtype) for shape in ((2, 32, 9, 9), (8, 32, 3, 3), (8,)))
    y = F.conv2d(x, w, b)
    assert y.dtype is dtype
    torch.testing.assert_close(y, F.conv2d(x.float(), w.float(), b.float()).to(dtype), rtol=0, atol=0)
    one = F.conv2d(x, w[:, :, :1, :1])
    torch.testing.assert_close(one, F.conv2d(x.float(), w[:, :, :1, :1].float()).to(dtype), rtol=0, atol=0)
    deep = F.conv2d(x, w[:1].expand(32, 32, 3, 3)[:, :1].contiguous(), groups=32)
    assert deep.dtype is dtype


def test_results_are_channels_last_where_an_operand_is() -> None:
    x, w = torch.ones(2, 3, 5, 5), torch.ones(4, 3, 3, 3)
    last = torch.channels_last
    assert F.conv2d(x, w).is_contiguous()
    for y in (F.conv2d(x.to(memory_format=last), w), F.conv2d(x, w.to(memory_format=last))):
        assert y.stride() == (36, 1, 12, 4)
    assert F.conv_transpose2d(x.to(memory_format=last), w.transpose(0, 1)).is_contiguous(memory_format=last)
    volume = torch.ones(2, 3, 5, 5, 5).to(memory_format=torch.channels_last_3d)
    assert F.conv3d(volume, torch.ones(4, 3, 1, 1, 1)).is_contiguous(memory_format=torch.channels_last_3d)
    leaf = x.to(memory_format=last).requires_grad_()
    F.conv2d(leaf, w).sum().backward()
    assert leaf.grad.tolist() == torch.autograd.grad(F.conv2d(z := x.requires_grad_(), w).sum(), z)[0].tolist()


def test_empty_batches() -> None:
    w, b = torch.ones(4, 3, 3, 3, requires_grad=True), torch.ones(4, requires_grad=True)
    x = torch.zeros(0, 3, 5, 5, requires_grad=True)
    y = F.conv2d(x, w, b)
    assert y.shape == (0, 4, 3, 3)
    y.sum().backward()
    assert x.grad.shape == x.shape and w.grad.abs().sum().item() == b.grad.abs().sum().item() == 0.0
    assert F.conv_transpose2d(x, w.transpose(0, 1)).shape == (0, 4, 7, 7)
    assert F.conv2d(torch.zeros(2, 0, 5, 5), torch.zeros(4, 0, 3, 3), b).shape == (2, 0, 3, 3)
    assert F.conv_transpose1d(torch.ones(2, 3, 1), torch.ones(3, 4, 2), padding=1).shape == (2, 4, 0)


def test_gradients_of_functions() -> None:
    torch.manual_seed(1)
    wide = lambda *shape: torch.randn(*shape, dtype=torch.float64).requires_grad_()  # noqa: E731
    for call, operands in (
        (lambda x, w, b: F.conv2d(x, w, b, 2, 1, groups=2), (wide(1, 2, 3, 4), wide(2, 1, 2, 3), wide(2))),
        (lambda x, w: F.conv1d(x, w, padding="same", dilation=2), (wide(2, 1, 4), wide(2, 1, 2))),
        (lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), (wide(2, 2, 3), wide(2, 1, 3), wide(1))),
    ):
        assert torch.autograd.gradcheck(call, operands) and torch.autograd.gradgradcheck(call, operands)


x2, w2 = torch.zeros(2, 3, 5, 5), torch.zeros(4, 3, 3, 3)
REFUSED = [
    (
        lambda: F.conv2d(x2[0, 0], w2),
        r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d, but got .*\[5, 5\]",
    ),
    (lambda: F.conv1d(x2[0], w2), r"Expected 4-dimensional input for 4-dimensional weight \[4, 3, 3, 3\]"),
    (
        lambda: F.conv2d(x2[:, :2], w2),
        r"Given groups=1, weight of size \[4, 3, 3, 3\], expected input\[2, 2, 5, 5\] to ",
    ),
    (
        lambda: F.conv_transpose2d(x2, w2),
        r"Given transposed=1, weight of size .* to have 4 channels, but got 3 channels",
    ),
    (lambda: F.conv2d(x2, w2, groups=3), r"Given groups=3, expected weight to be divisible by 3 at dimension 0"),
    (lambda: F.conv2d(x2, w2[:0]), r"Given groups=1, expected weight to be at least 1 at dimension 0"),
    (lambda: F.conv2d(x2, w2, groups=0), "non-positive groups is not supported"),
    (lambda: F.conv2d(x2, w2, padding=-1), "negative padding is not supported"),
    (lambda: F.conv2d(x2, w2, stride=(1, 0)), "non-positive stride is not supported"),
    (lambda: F.conv2d(x2, w2, dilation=-1), "dilation should be greater than zero"),
    (lambda: F.conv1d(x2[0], w2[0, 0]), "weight should have at least three dimensions"),
    (lambda: F.conv2d(x2, w2, stride=(1, 2, 3)), r"expected stride to be a single integer value or a list of 2 values"),
    (
        lambda: F.conv2d(x2[:, :, :2], w2),
        r"Calculated padded input size per channel: \(2 x 5\). Kernel size: \(3 x 3\)",
    ),
    (lambda: F.conv2d(x2[:, :, :0], w2, padding=3), "Only zero batch or zero channel inputs are supported"),
    (lambda: F.conv2d(x2, w2[:, :, :0]), "kernel size should be greater than zero"),
    (
        lambda: F.conv2d(x2, w2, torch.zeros(3)),
        r"Given weight of size .*, expected bias to be 1-dimensional with 4 ele",
    ),
    (
        lambda: F.conv2d(x2, w2.double()),
        r"Input type \(torch.FloatTensor\) and weight type \(torch.DoubleTensor\) should",
    ),
    (
        lambda: F.conv2d(x2, w2, torch.zeros(4).double()),
        r"Input type \(float\) and bias type \(double\) should be the same",
    ),
    (lambda: F.conv2d(x2.bool(), w2.bool()), "not implemented for 'Bool'"),
    (lambda: F.conv2d(x2, w2, padding="same", stride=2), "padding='same' is not supported for strided convolutions"),
    (lambda: F.conv2d(x2, w2, padding="full"), "Invalid padding string: 'full'"),
    (lambda: F.conv_transpose2d(x2, w2[:3], stride=2, output_padding=2), "output padding must be smaller than either"),
    (lambda: F.conv_transpose2d(x2, w2[:3], output_padding=-1), "negative output_padding is not supported"),
    (lambda: F.conv_transpose2d(x2, w2[:3], padding=5), r"Calculated output size per channel: \(-3 x -3\)"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_bad_input_is_refused_in_pytorchs_words(number: int) -> None:
    call, words = REFUSED[number]
    with pytest.raises(RuntimeError, match=words):
        call()


def test_arguments_of_wrong_types_are_refused() -> None:
    for options, words in (
        ({"stride": 1.5}, r"argument 'stride' must be tuple of ints, not float"),
        ({"padding": (1, "a")}, r"argument 'padding' must be tuple of ints"),
        ({"groups": 1.0}, r"argument 'groups' must be int, not float"),
    ):
        with pytest.raises(TypeError, match=words):
            F.conv2d(x2, w2, **options)
    with pytest.raises(TypeError, match=r"conv2d\(\): argument 'input' \(position 1\) must be Tensor, not list"):
        F.conv2d([1], w2)
    with pytest.raises(TypeError, match=r"conv2d\(\): argument 'bias' \(position 3\) must be Tensor, not int"):
        F.conv2d(x2, w2, 3)
    with pytest.raises(RuntimeError, match=r"convolution: operands of shapes"):
        family.convolution(x2, w2[:, :2], stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, size=(3, 3))


@pytest.mark.usefixtures("few_threads")
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(
    ("shape", "taps", "groups"),
    [((4, 32, 112, 112), 3, 1), ((4, 32, 112, 112), 3, 32), ((8, 64, 56, 56), 3, 1), ((8, 64, 56, 56), 1, 1)],
)
def test_a_convolution_takes_little_memory_beside_its_operands(
    shape: tuple[int, ...], taps: int, groups: int, last: bool
) -> None:
    """At most 0.3 of input, weight and result, where the unfolded input would be 9 of the input."""
    format = torch.channels_last if last else torch.contiguous_format
    channels = shape[1]
    x, w = (torch.ones(*each).to(memory_format=format) for each in (shape, (channels, channels // groups, taps, taps)))
    beside: list[int] = []

    def measure() -> None:
        tracemalloc.start()
        try:
            y = F.conv2d(x, w, padding=taps // 2, groups=groups)
            beside.append(tracemalloc.get_traced_memory()[1] - y.nbytes)
        finally:
            tracemalloc.stop()

    thread = threading.Thread(target=measure)  # whose scratch memory is new
    thread.start()
    thread.join()
    assert 0 < beside[0] < 0.3 * (2 * x.nbytes + w.nbytes)


def peers() -> list[tuple[str, dict[str, Any], tuple[tuple[int, ...], ...]]]:
    """Functions with arguments and the shapes of their operands."""
    found: list[tuple[str, dict[str, Any], tuple[tuple[int, ...], ...]]] = []
    for rank, sizes, kernel in ((1, (11,), (3,)), (2, (7, 9), (3, 2)), (3, (4, 5, 6), (2, 1, 3))):
        for options in (
            {},
            {"stride": 2, "padding": 1},
            {"dilation": 2, "padding": (2,) * rank},
            {"groups": 2, "stride": (1,) * (rank - 1) + (2,)},
        ):
            groups = options.get("groups", 1)
            found.append((f"conv{rank}d", options, ((2, 4, *sizes), (6, 4 // groups, *kernel), (6,))))
            more = {"output_padding": 1} if options.get("stride") == 2 else {}
            w = (4, 6 // groups, *kernel)
            found.append((f"conv_transpose{rank}d", {**options, **more}, ((2, 4, *sizes), w, (6,))))
        found.append((f"conv{rank}d", {"padding": "same"}, ((4, *sizes), (6, 4, *kernel), (6,))))
        found.append((f"conv{rank}d", {"padding": "valid"}, ((0, 4, *sizes), (6, 4, *kernel), (6,))))
    return found


@pytest.mark.peer
@pytest.mark.parametrize("number", range(len(peers())))
def test_functions_beside_pytorch(number: int) -> None:
    """Values, strides, the node's name, and gradients of both orders."""
    peer = pytest.importorskip("torch")
    name, options, shapes = peers()[number]
    rng = np.random.default_rng(number)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    found = []
    for library in (torch, peer):
        tensors = [library.tensor(array, requires_grad=True) for array in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that PyTorch may need a padded copy
            y = getattr(library.nn.functional, name)(*tensors, **options)
        first = library.autograd.grad((y * y).sum(), tensors, create_graph=True)
        second = library.autograd.grad(sum((each * each).sum() for each in first), tensors)
        node = y.grad_fn.name() if y.ndim == len(shapes[1]) else ""  # one image is squeezed
        found.append((node, tuple(y.stride()), [each.detach().numpy() for each in (y, *first, *second)]))
    (ours, theirs) = found
    assert ours[:2] == theirs[:2]
    for one, other in zip(ours[2], theirs[2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.peer
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals_beside_pytorch(number: int) -> None:
    """The same type of error, with the same first words unless those are oneDNN's."""
    peer = pytest.importorskip("torch")
    call, _ = REFUSED[number]
    errors = []
    for library in (torch, peer):
        scope = {"F": library.nn.functional, "torch": library}
        scope |= {name: library.zeros(*globals()[name].shape) for name in ("x2", "w2")}
        with pytest.raises(RuntimeError) as caught:
            eval(call.__code__, scope)
        errors.append(str(caught.value).splitlines()[0])
    ours, theirs = errors
    assert theirs.startswith(ours[: len("Input type (torch.FloatTensor)")]) or "could not" in theirs, errors
