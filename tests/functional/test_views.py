"""Views against NumPy on the CPU and on a simulated device: values, shared memory, strides, refusals, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tritensor as torch

from ..needs import needs_triton


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)], scope="module")
def place(request):
    if request.param == "cpu":
        yield request.param
    else:
        with torch.cuda.simulate(devices=1):
            yield request.param


def factor(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """A shape of `count` elements."""
    if count == 0:
        return draw(st.sampled_from([(0,), (0, 3), (2, 0), (1, 0, 2)]))
    shape = []
    while count > 1:
        extent = draw(st.sampled_from([n for n in range(2, count + 1) if count % n == 0]))
        shape.append(extent)
        count //= extent
    return tuple(shape) + draw(st.sampled_from([(), (1,)]))


def draw_slice(draw: st.DrawFn, extent: int) -> slice:
    bound = st.none() | st.integers(-extent - 1, extent + 1)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3])))


def step(draw: st.DrawFn, x: torch.Tensor, array: np.ndarray) -> tuple[torch.Tensor, np.ndarray, bool]:
    """One operation on both; the last value is whether the result may be a copy."""
    rank = array.ndim
    kind = draw(st.sampled_from(["permute", "index", "unsqueeze", "squeeze", "expand", "reshape", "view", "flatten"]))
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return x.permute(*order), array.transpose(order), False
    if kind == "unsqueeze":
        dim = draw(st.integers(-rank - 1, rank))
        return x.unsqueeze(dim), np.expand_dims(array, dim), False
    if kind == "squeeze":
        return x.squeeze(), array.squeeze(), False
    if kind == "expand":
        lead = draw(st.sampled_from([(), (2,), (1, 2)]))
        shape = lead + tuple(draw(st.sampled_from([1, 3])) if extent == 1 else extent for extent in array.shape)
        wanted = tuple(
            -1 if extent == old else extent for extent, old in zip(shape[len(lead) :], array.shape, strict=True)
        )
        return x.expand(*lead, *wanted), np.broadcast_to(array, shape), False
    if kind == "index":
        key = []
        for extent in array.shape:
            if extent and draw(st.booleans()):
                key.append(draw(st.integers(-extent, extent - 1)))
            else:
                key.append(draw_slice(draw, extent))
            if draw(st.integers(0, 4)) == 0:
                key.append(None)
        key = tuple(key[: draw(st.integers(0, len(key)))])
        return x[(*key, ...)], array[(*key, ...)], False
    if array.size > 200:
        return x, array, False
    shape = factor(draw, array.size)
    if kind == "flatten":
        return x.flatten(), array.reshape(-1), True
    if kind == "reshape":
        return x.reshape(shape), array.reshape(shape), True
    try:
        expected = np.reshape(array, shape, copy=False)
    except (ValueError, TypeError):
        return x.reshape(shape), array.reshape(shape), True
    return x.view(shape), expected, False


@pytest.mark.thorough
@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_chains_of_views_agree_with_numpy(place, data) -> None:
    shape = data.draw(st.sampled_from([(), (6,), (2, 3), (3, 1, 4), (2, 3, 4), (1, 1), (0, 3), (2, 2, 2, 2)]))
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    base = torch.tensor(array, device=place)
    x, copied = base, False
    for _ in range(data.draw(st.integers(1, 5))):
        x, array, may_copy = step(data.draw, x, array)
        copied = copied or may_copy
        assert x.shape == array.shape
    assert x.tolist() == array.tolist() and x.is_contiguous() == (array.size == 0 or array.flags.c_contiguous)
    if array.size and not copied:
        assert all(
            a == b for n, a, b in zip(array.shape, x.stride(), [s // 4 for s in array.strides], strict=True) if n > 1
        )
        base.fill_(-1)
        assert x.flatten()[0].item() == -1


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_writing_through_a_view_writes_the_base(place, data) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    base = torch.tensor(array, device=place)
    key = tuple(draw_slice(data.draw, extent) for extent in array.shape)
    order = data.draw(st.permutations(range(3)))
    base.permute(*order)[tuple(key[dim] for dim in order)] = 99
    array[key] = 99
    assert base.tolist() == array.tolist() and base._version >= 1


def q() -> torch.Tensor:
    return torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.view(5), RuntimeError, r"shape '\[5\]' is invalid for input of size 24"),
        (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda x: x.view(-2, 12), RuntimeError, r"invalid shape dimension -2 at index 0 of shape \[-2, 12\]"),
        (lambda x: x.reshape(-2, 12), RuntimeError, r"invalid shape dimension -2 at index 0 of shape \[-2, 12\]"),
        (lambda x: x.reshape((-3, 8)), RuntimeError, "invalid shape dimension -3"),
        (lambda x: x[:0].view(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements"),
        (lambda x: x.mT.view(24), RuntimeError, "view size is not compatible with input tensor's size and stride"),
        (lambda x: x.view(2.0, 12), TypeError, r"view\(\): argument 'size' must be tuple of ints, not float"),
        (lambda x: x.permute(0, 1), RuntimeError, "permute: number of dimensions in the tensor input does not match"),
        (lambda x: x.permute(0, 0, 1), RuntimeError, r"permute\(\): duplicate dims are not allowed"),
        (lambda x: x.transpose(0, 3), IndexError, r"Dimension out of range \(expected to be in range of \[-3, 2\]"),
        (lambda x: x.transpose(1), TypeError, r"transpose\(\): argument 'dim1' is missing"),
        (lambda x: x.transpose((0, 1)), RuntimeError, "permute: number of dimensions in the tensor input"),
        (lambda x: x.t(), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: x[0, 0].mT, RuntimeError, r"tensor\.mT is only supported on matrices"),
        (lambda x: x.expand(3, 4), RuntimeError, r"expand\(.*the number of sizes provided \(2\) must be greater"),
        (lambda x: x.expand(2, 3, 5), RuntimeError, r"The expanded size of the tensor \(5\) must match the existing"),
        (lambda x: x.expand(-1, 2, 3, 4), RuntimeError, r"The expanded size of the tensor \(-1\) isn't allowed"),
        (lambda x: x.squeeze(3), IndexError, "Dimension out of range"),
        (lambda x: x[0, 0, 0].squeeze(1), IndexError, "Dimension out of range"),
        (lambda x: x.unsqueeze(4), IndexError, r"Dimension out of range \(expected to be in range of \[-4, 3\]"),
        (lambda x: x.flatten(2, 1), RuntimeError, r"flatten\(\) has invalid args: start_dim cannot come after end_dim"),
        (lambda x: x.narrow(1, 2, 2), RuntimeError, r"start \(2\) \+ length \(2\) exceeds dimension size \(3\)"),
        (lambda x: x.narrow(1, 4, 0), IndexError, "start out of range"),
        (lambda x: x.narrow(1, torch.tensor(1.0), 1), RuntimeError, "start must be an 0-dim integral Tensor"),
        (lambda x: x.narrow(1, torch.tensor([1]), 1), RuntimeError, "start must be an 0-dim integral Tensor"),
        (lambda x: x.narrow(1, 0, -1), RuntimeError, r"narrow\(\): length must be non-negative\."),
        (lambda x: x[0, 0, 0].narrow(0, 0, 1), RuntimeError, r"narrow\(\) cannot be applied to a 0-dim tensor"),
        (lambda x: x.select(0, 2), IndexError, "out of"),
        (lambda x: x[0, 0, 0].select(0, 0), IndexError, r"select\(\) cannot be applied to a 0-dim tensor"),
        (lambda x: x.split(-1), RuntimeError, "split expects split_size be non-negative"),
        (lambda x: x.split([1, 2]), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 2"),
        (lambda x: x[0, 0, 0].split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
        (lambda x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0"),
        (lambda x: x[0, 0, 0].chunk(1), RuntimeError, "chunk expects at least a 1-dimensional tensor"),
        (lambda x: x[0, 0, 0].unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (
            lambda x: x.movedim((0, 1), (2,)),
            RuntimeError,
            r"movedim: Invalid source or destination dims: source \(\[0, 1\] dims\) .* destination \(\[2\] dims\)",
        ),
        (lambda x: x.movedim((0, 0), (0, 1)), RuntimeError, r"movedim: repeated dim in `source` \(\[0, 0\]\)"),
        (lambda x: x.movedim((0, 1), (1, 1)), RuntimeError, r"movedim: repeated dim in `destination` \(\[1, 1\]\)"),
        (lambda x: x[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (lambda x: x[:, -4], IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        (lambda x: x[0, 0, 0, 0], IndexError, "too many indices for tensor of dimension 3"),
        (lambda x: x[0, 0, 0][0], IndexError, "invalid index of a 0-dim tensor"),
        (lambda x: x[::0], ValueError, "step must be greater than zero"),
        (lambda x: x["a"], IndexError, "only integers, slices"),
    ],
)
def test_refused(place, call, error, words) -> None:
    with pytest.raises(error, match=words):
        call(q().to(place))


def test_pieces(place) -> None:
    x = q().to(place)
    assert [p.shape[2] for p in x.split(3, 2)] == [3, 1] and [p.shape[1] for p in x.split([1, 0, 2], 1)] == [1, 0, 2]
    assert [p.shape[2] for p in x.chunk(3, 2)] == [2, 2] and len(x[:0].chunk(3)) == 3 and len(x[:0].split(2)) == 1
    assert [p.tolist() for p in x.unbind(1)] == [x[:, i].tolist() for i in range(3)]
    assert x.movedim(0, 2).shape == (3, 4, 2) and x.unflatten(2, (2, -1)).shape == (2, 3, 2, 2)
    for piece in (*x.split(1), *x.chunk(2, 1), *x.unbind(2)):
        assert x._counter is piece._counter


GRADIENTS = {
    "view": lambda x: x.view(4, 6),
    "reshape of a transpose": lambda x: x.mT.reshape(-1),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x.unsqueeze(1).expand(2, 5, 3, 4),
    "expand in front": lambda x: x.expand(2, 2, 3, 4),
    "slice": lambda x: x[1:, ::2, None, -1],
    "select": lambda x: x.select(1, -1),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "split": lambda x: x.split([1, 3], 2)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "unbind": lambda x: x.unbind(0)[1],
    "flatten": lambda x: x.flatten(1),
    "squeeze": lambda x: x[:1].squeeze(0).unsqueeze(-1),
    "movedim": lambda x: x.movedim(0, -1).swapaxes(0, 1),
    "alias": lambda x: x[0].t(),
    "broadcast": lambda x: torch.broadcast_tensors(x, torch.ones(2, 1, 1, 1))[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    x = (q().double() / 7).requires_grad_()
    function = GRADIENTS[name]
    assert function(x).requires_grad and not function(x.detach()).requires_grad
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(lambda y: function(y * y), (x,))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_on_the_device_are_those_of_the_cpu(name: str, place) -> None:
    found = []
    for where in ("cpu", place):
        x = (q() / 7).to(where).requires_grad_()
        out = GRADIENTS[name](x) if name != "broadcast" else x.expand(2, 2, 3, 4)
        (out * out).sum().backward()
        found.append(x.grad.cpu())
    assert torch.allclose(found[0], found[1])


def test_broadcast_tensors_returns_what_has_the_shape_as_it_is():
    x, y = torch.ones(2, 3), torch.ones(3)
    first, second = torch.broadcast_tensors(x, y)
    assert first is x and second.shape == (2, 3)
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        torch.broadcast_tensors(x, 1)
    for name in ("view_as", "reshape_as", "expand_as"):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'other' \(position 1\) must be Tensor, not int"):
            getattr(x, name)(2)


def test_a_transpose_of_all_dimensions_is_numpys() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    for made in (torch.transpose(x, (2, 0, 1)), x.transpose([2, 0, 1])):
        np.testing.assert_array_equal(made.numpy(), np.transpose(x.numpy(), (2, 0, 1)))
        assert made.data_ptr() == x.data_ptr()


def test_the_transpose_of_a_tensor_without_dimensions_is_itself():
    x = torch.tensor(1.0)
    assert x.mT is x


UNFLATTENED = {
    "no sizes": (lambda: torch.ones(2).unflatten(0, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    "no dimensions": (lambda: torch.tensor(1.0).unflatten(0, (1,)), RuntimeError, "unflatten got an unexpected error"),
    "product": (lambda: torch.ones(2).unflatten(0, (3,)), RuntimeError, r"Provided sizes \[3\] don't multiply up to"),
    "dimension": (lambda: torch.ones(2).unflatten(3, (1,)), IndexError, "Dimension out of range"),
    "roll": (lambda: torch.roll(torch.tensor(1), 2, -1), IndexError, "Dimension specified as -1 but tensor has no dim"),
    "index": (lambda: torch.ones(2)[2**64], ValueError, "Overflow when unpacking long long"),
    "along": (lambda: torch.tensor(1.0).take_along_dim(torch.tensor(0), 0), IndexError, "Dimension specified as 0 but"),
}


@pytest.mark.parametrize(("call", "kind", "words"), UNFLATTENED.values(), ids=UNFLATTENED)
def test_what_does_not_fit_the_dimensions_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_indices_of_any_integer_dtype_without_dimensions_and_several_ellipses():
    x = torch.arange(6).reshape(2, 3)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        assert x[..., torch.tensor(1, dtype=dtype)].tolist() == [1, 4]
    assert x[..., 0, ...].tolist() == [0, 3] and x[..., ...].shape == (2, 3)


def test_strides_of_dimensions_that_an_index_made_and_of_no_elements():
    assert torch.ones(3)[None, :, None].stride() == (3, 1, 1)
    assert torch.ones(())[None].stride() == (1,)
    assert torch.ones(2, 0).stride() == (1, 1)
    assert torch.ones(3).expand(2, 3).stride() == (0, 1)
