"""Attention and normalised vectors: gradients, masks and devices; values are compared with PyTorch's by `-m peer`."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.attention.family import attention, quick_attention
from tritensor.nn import functional as F
from tritensor.nn.attention import SDPBackend, bias, sdpa_kernel

from ..needs import needs_triton


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_a_weighted_mean_of_values(device, causal):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, size, 4)) for size in (5, 6, 6))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(4)
    if causal:
        scores = np.where(np.tri(5, 6, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = F.scaled_dot_product_attention(*(torch.from_numpy(each).to(device) for each in (q, k, v)), is_causal=causal)
    np.testing.assert_allclose(found.cpu().numpy(), weights @ v, rtol=1e-10)


def test_a_query_without_keys_gets_zeros_and_its_gradient_no_nan():
    q, k, v = (torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
    for given in (mask, torch.zeros(3, 3, dtype=torch.float64).masked_fill(~mask, -math.inf)):
        out = F.scaled_dot_product_attention(q, k, v, given)
        assert out[1].tolist() == [0, 0]
        torch.autograd.gradcheck(partial(F.scaled_dot_product_attention, attn_mask=given), (q, k, v))
    with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


@pytest.mark.parametrize("given", ["nothing", "causal", "boolean", "floating", "dropout"])
@pytest.mark.parametrize(("lead", "rows", "cols"), [((2, 3), 120, 70), ((), 1500, 700)])
def test_attention_by_blocks_agrees_with_other_operators(given, lead, rows, cols):
    """A block is some heads, or some queries of one head."""
    rng = np.random.default_rng(0)
    shapes = ((*lead, rows, 8), (*lead, cols, 8), (*lead, cols, 5), (*lead, rows, 5))
    inputs = [torch.from_numpy(rng.standard_normal(shape)) for shape in shapes]
    mask = None
    if given == "boolean":
        mask = torch.from_numpy(rng.random((rows, cols)) < 0.5)
        mask[3] = False
    elif given == "floating":
        mask = torch.from_numpy(rng.standard_normal((rows, cols)))
        mask[3] = -math.inf
    options = {"is_causal": given == "causal", "dropout_p": 0.3 * (given == "dropout")}
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        found = results_of(*inputs, attn_mask=mask, **options)
    with sdpa_kernel(SDPBackend.MATH):
        wanted = results_of(*inputs, attn_mask=mask, **options)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def results_of(q, k, v, grad=None, **options):
    """The result and the gradients of attention, with the same random numbers every time."""
    torch.manual_seed(0)
    inputs = [each.detach().requires_grad_() for each in (q, k, v)]
    out = F.scaled_dot_product_attention(*inputs, **options)
    out.backward(torch.ones_like(out) if grad is None else grad)
    return [out.detach(), *(each.grad for each in inputs)]


GROUPED = [
    ((2, 4, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3)),
    ((6, 3, 4), (2, 3, 4), (3, 3, 4)),
    ((4, 5, 2), (1, 5, 2), (4, 5, 2)),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shapes", GROUPED, ids=str)
@pytest.mark.parametrize("masked", [None, (5, 7), (4, 1, 7), (1, 5, 1)], ids=str)
def test_grouped_heads_share_keys_and_values(device, shapes, masked):
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape, dtype=torch.float64, device=device) for shape in shapes)
    if masked and shapes is not GROUPED[0]:
        pytest.skip("masks are tried for one of the shapes")
    mask = torch.randn(masked, dtype=torch.float64, device=device) if masked else None
    found = results_of(q, k, v, attn_mask=mask, enable_gqa=True)
    repeated = [each.repeat_interleave(q.shape[-3] // each.shape[-3], -3) for each in (k, v)]
    wanted = results_of(q, *repeated, attn_mask=mask)
    for position, few in ((2, k), (3, v)):
        wanted[position] = wanted[position].unflatten(-3, (few.shape[-3], -1)).sum(-3)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_batches_broadcast_and_the_gradients_are_sums(device):
    torch.manual_seed(0)
    shapes = ((3, 1, 4, 2), (2, 5, 2), (3, 2, 5, 3))
    q, k, v = (torch.randn(shape, dtype=torch.float64, device=device) for shape in shapes)
    found = results_of(q, k, v)
    assert [each.shape for each in found] == [(3, 2, 4, 3), *shapes]
    wanted = results_of(q.expand(3, 2, 4, 2), k.expand(3, 2, 5, 2), v)
    torch.testing.assert_close(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1].sum(1, keepdim=True))
    torch.testing.assert_close(found[2], wanted[2].sum(0))


def test_a_result_has_the_order_of_its_query_in_memory(device):
    """So that heads that were a dimension of features are one again without a copy."""
    q = torch.randn(2, 5, 3, 4, device=device).transpose(1, 2)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        out, *_ = results_of(q, q.contiguous(), q[..., :1])
        assert out.shape == (2, 3, 5, 1) and out.stride() == (15, 1, 3, 1)
        assert results_of(q[:1].expand(2, 3, 5, 4), q, q)[0].stride() == (60, 20, 4, 1)


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropped_weights_are_the_same_on_every_way_and_again_in_the_backward_pass(device, p):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, rows, 4, dtype=torch.float64) for rows in (5, 11, 11))
    wanted = results_of(q, k, v, dropout_p=p)
    for way in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(way):
            found = results_of(*(each.to(device) for each in (q, k, v)), dropout_p=p)
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-9, atol=1e-12)
    if p == 1:
        assert not any(each.any() for each in found)


def test_dropped_weights_have_gradients_of_both_orders():
    def attended(*inputs):
        torch.manual_seed(1)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(*inputs, dropout_p=0.3)

    torch.manual_seed(0)
    inputs = [torch.randn(1, rows, 2, dtype=torch.float64, requires_grad=True) for rows in (2, 3, 3)]
    torch.autograd.gradcheck(attended, inputs)
    torch.autograd.gradgradcheck(attended, inputs)


def test_the_gradient_of_a_mask(device):
    torch.manual_seed(0)
    shapes = ((2, 3, 2), (2, 4, 2), (2, 4, 2), (3, 1))
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    torch.autograd.gradcheck(F.scaled_dot_product_attention, inputs)
    (wanted,) = torch.autograd.grad(F.scaled_dot_product_attention(*inputs).sin().sum(), inputs[3:])
    inputs = [each.detach().to(device).requires_grad_() for each in inputs]
    (found,) = torch.autograd.grad(F.scaled_dot_product_attention(*inputs).sin().sum(), inputs[3:])
    torch.testing.assert_close(found.cpu(), wanted)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match=r"No available kernel\. "):
        F.scaled_dot_product_attention(*inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_does_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    x = [torch.from_numpy(rng.standard_normal((5, 300, 16))).to(dtype).requires_grad_() for _ in range(3)]
    found, before = [], torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            out = F.scaled_dot_product_attention(*x)
            assert out.dtype is dtype
            parts = (out, *torch.autograd.grad(out.float().square().sum(), x))
            found.append([part.detach().float().numpy().tobytes() for part in parts])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]
    exact = F.scaled_dot_product_attention(*(each.detach().double() for each in x))
    torch.testing.assert_close(out.detach().double(), exact, rtol=2e-2, atol=2e-3)


def test_attention_is_differentiated_twice_and_notices_changes(device):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    found = []
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        if device.type == "cpu":
            torch.autograd.gradcheck(F.scaled_dot_product_attention, inputs)
            torch.autograd.gradgradcheck(F.scaled_dot_product_attention, inputs)
        for place, dtype in (("cpu", torch.float64), (device, torch.float64), (device, torch.float16)):
            leaves = [each.detach().to(place, dtype).requires_grad_() for each in inputs]
            out = F.scaled_dot_product_attention(*leaves)
            first = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
            second = torch.autograd.grad(sum(each.square().sum() for each in first), leaves)
            assert second[0].dtype is dtype
            found.append([each.detach().cpu().double() for each in (*first, *second)])
        for ours, halves, wanted in zip(*found[1:], found[0], strict=True):
            torch.testing.assert_close(ours, wanted)
            torch.testing.assert_close(halves, wanted, rtol=3e-2, atol=3e-3)
        mask = torch.ones(3, 3, dtype=torch.bool, device=device)
        out = F.scaled_dot_product_attention(*leaves, mask)
    mask[0, 0] = False
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_attention_drops_weights():
    torch.manual_seed(0)
    ones = torch.ones(64, 8)
    dropped = F.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5)
    assert dropped.std() > 0 and abs(dropped.mean().item() - 1) < 0.2


def test_normalised_vectors(device):
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], device=device)
    torch.testing.assert_close(F.normalize(x), torch.tensor([[0.6, 0.8], [0.0, 0.0]], device=device))
    torch.testing.assert_close(F.cosine_similarity(x, x), torch.tensor([1.0, 0.0], device=device))
    pair = tuple(torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.autograd.gradcheck(F.cosine_similarity, pair)


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        (torch.int64, torch.float32, torch.float32),
        (torch.float16, torch.int64, torch.float16),
        (torch.float16, torch.float64, torch.float64),
        (torch.float16, torch.bfloat16, torch.float32),
    ],
)
def test_cosines_of_two_dtypes(device, one, other, dtype):
    x, y = torch.tensor([3, 4], dtype=one, device=device), torch.tensor([[4, 3], [3, -4]], dtype=other, device=device)
    found = F.cosine_similarity(x, y)
    assert found.dtype is dtype
    torch.testing.assert_close(found.cpu().double(), torch.tensor([0.96, -0.28]).double(), rtol=3e-3, atol=1e-3)


def test_cosines_at_the_edges(device):
    large = torch.tensor([[1e30, -2.0]], device=device)
    assert F.cosine_similarity(large, torch.ones(1, 2, device=device), 0).tolist() == [1, -1]
    tiny = torch.tensor([1e-9, 0.0], device=device, requires_grad=True)
    F.cosine_similarity(tiny, torch.tensor([3.0, 4.0], device=device), 0).backward()
    # the gradient passes the bound of the length, as PyTorch's does
    np.testing.assert_allclose(tiny.grad.tolist(), [5.4e7, 8e7], rtol=1e-5)
    for dtype, words in ((torch.int64, "Long"), (torch.bool, "Bool")):
        x = torch.ones(2, dtype=dtype, device=device)
        with pytest.raises(RuntimeError, match=f"expected common dtype to be floating point, yet .* is {words}"):
            F.cosine_similarity(x, x, 0)


@pytest.mark.parametrize("shape", [(3, 200), (2, 200, 3), (2, 2, 200, 200)])
def test_a_mask_that_does_not_fit_many_scores_is_refused(shape):
    x = torch.randn(2, 200, 8)
    with pytest.raises(RuntimeError, match=r"must match the size of tensor b|doesn't match the broadcast shape"):
        F.scaled_dot_product_attention(x, x, x, torch.ones(shape, dtype=torch.bool))


def test_a_tensor_that_is_all_three_inputs_has_one_gradient_at_each_order() -> None:
    """Its second derivatives were three times as large where attention is computed in blocks."""
    x = torch.randn(2, 128, 8, dtype=torch.float64, requires_grad=True)
    out = F.scaled_dot_product_attention(x, x, x).square().sum()
    (plain,) = torch.autograd.grad(out, x, retain_graph=True)
    (recorded,) = torch.autograd.grad(out, x, create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), plain.numpy(), rtol=1e-9, atol=1e-9)


X, WIDE = torch.ones(2, 4, 3, 8), torch.ones(2, 4, 3, 9)
WRONG = [
    (
        RuntimeError,
        "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: "
        "double and value.dtype: float instead.",
        (X, X.double(), X),
        {},
    ),
    (
        RuntimeError,
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1 key.dim: 4 "
        "and value.dim: 4 instead.",
        (X[0, 0, 0], X, X),
        {},
    ),
    (
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [8, 8] but got: [8, 9].",
        (X, WIDE, X),
        {},
    ),
    (
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [8, 3] but got: [8, 2].",
        (X, X, X[:, :, :2]),
        {},
    ),
    (RuntimeError, "mat1 and mat2 shapes cannot be multiplied (3x8 and 9x3)", (X[0, 0], WIDE[0, 0], X[0, 0]), {}),
    (
        RuntimeError,
        "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1",
        (X, X[:, :2], X[:, :2]),
        {},
    ),
    (RuntimeError, "expected scalar type Float but found Int", (X.int(), X.int(), X.int()), {}),
    (
        NotImplementedError,
        "\"softmax_lastdim_kernel_impl\" not implemented for 'ComplexFloat'",
        (X.to(torch.complex64), X.to(torch.complex64), X.to(torch.complex64)),
        {},
    ),
    (TypeError, "scaled_dot_product_attention(): argument 'key' (position 2) must be Tensor, not list", (X, [], X), {}),
    (
        TypeError,
        "scaled_dot_product_attention(): argument 'attn_mask' (position 4) must be Tensor, not int",
        (X, X, X, 3),
        {},
    ),
    (TypeError, "scaled_dot_product_attention(): argument 'scale' must be float, not str", (X, X, X), {"scale": "1"}),
    (
        RuntimeError,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
        "double and  query.dtype: float instead.",
        (X, X, X, X[0, 0, :, :3].double()),
        {},
    ),
    (
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (8) at non-singleton dimension 3",
        (X, X, X, X),
        {},
    ),
    (
        RuntimeError,
        "output with shape [3, 3] doesn't match the broadcast shape [1, 3, 3]",
        (X[0, 0], X[0, 0], X[0, 0], torch.ones(1, 3, 3)),
        {},
    ),
    (RuntimeError, "dropout probability has to be between 0 and 1, but got 2", (X, X, X), {"dropout_p": 2}),
    (
        RuntimeError,
        "Number of heads in key and value must divide the number of heads in ",
        (X, X[:, :3], X[:, :3]),
        {"enable_gqa": True},
    ),
    (
        RuntimeError,
        "Number of heads in key and value must divide the number of heads in ",
        (X, X[:, :0], X),
        {"enable_gqa": True},
    ),
    (
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        (X[0, 0], X[0, 0], X[0, 0]),
        {"enable_gqa": True},
    ),
    (
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 2",
        (X, X, X, bias.causal_lower_right(4, 5)),
        {},
    ),
    (
        ValueError,
        "CausalBias should not be used with causal=True",
        (X, X, X, bias.causal_upper_left(3, 3)),
        {"is_causal": True},
    ),
]


@pytest.mark.parametrize(("error", "words", "operands", "options"), WRONG, ids=range(len(WRONG)))
def test_what_is_refused(error, words, operands, options):
    with pytest.raises(error) as caught:
        F.scaled_dot_product_attention(*operands, **options)
    assert str(caught.value).startswith(words)


@needs_triton
def test_tensors_of_several_devices_are_refused():
    with torch.cuda.simulate(devices=1):
        with pytest.raises(
            RuntimeError, match="Expected query, key, and value to have the same device type, but got q"
        ):
            F.scaled_dot_product_attention(X, X.cuda(), X)
        with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device cuda:0!"):
            F.scaled_dot_product_attention(X.cuda(), X.cuda(), X.cuda(), torch.ones(3, 3))


def test_causal_biases(device):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, rows, 4, dtype=torch.float64, device=device) for rows in (3, 5, 5))
    for made, diagonal in ((bias.causal_upper_left, 0), (bias.causal_lower_right, 2)):
        triangle = made(3, 5)
        mask = torch.ones(3, 5, dtype=torch.bool, device=device).tril(diagonal)
        assert repr(triangle) == repr(mask.cpu())
        found, wanted = results_of(q, k, v, attn_mask=triangle), results_of(q, k, v, attn_mask=mask)
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs in the output"):
        blind = bias.causal_lower_right(5, 3)
    assert results_of(k, q, q, attn_mask=blind)[0][:, :2].eq(0).all()
    with pytest.raises(AssertionError, match="causal_lower_right only supports 2D tensors"):
        bias.causal_lower_right(3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        bias.CausalBias(1, 2, 3)


def test_ways_to_compute_are_enabled_and_refuse_as_pytorch_does(device):
    x, cuda = torch.ones(2, 40, 4, device=device), torch.backends.cuda
    states = [cuda.flash_sdp_enabled, cuda.mem_efficient_sdp_enabled, cuda.cudnn_sdp_enabled, cuda.math_sdp_enabled]
    assert all(each() for each in states)
    with sdpa_kernel(SDPBackend.MATH):
        assert [each() for each in states] == [False, False, False, True]
        out = F.scaled_dot_product_attention(x.requires_grad_(), x, x)
        assert "Attention" not in str(out.grad_fn)
    assert "Attention" in str(F.scaled_dot_product_attention(x, x, x).grad_fn)
    none = "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both"
    for ways in ([], SDPBackend.OVERRIDEABLE):
        with sdpa_kernel(ways), pytest.raises(RuntimeError, match=none):
            F.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]):
        if x.is_cuda:
            F.scaled_dot_product_attention(x, x, x)
            with pytest.raises(RuntimeError, match=r"No available kernel\. "):
                F.scaled_dot_product_attention(*[torch.ones(2, 300, device=device)] * 3)
        else:  # PyTorch's CPU has one fused way
            with pytest.raises(RuntimeError, match=none):
                F.scaled_dot_product_attention(x, x, x)
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)
    with pytest.raises(RuntimeError, match="set_sdp_use_flash expects a bool, but got int"):
        cuda.enable_flash_sdp(1)
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list of SDPBackend inst"):
        sdpa_kernel("math").__enter__()
    assert str(SDPBackend.MATH) == "SDPBackend.MATH" and repr(SDPBackend.ERROR) == "<SDPBackend.ERROR: -1>"
    assert int(SDPBackend.FLASH_ATTENTION) == 1 and all(each() for each in states)


def test_heads_wider_than_the_kernels_take_are_composed(device):
    x = torch.randn(3, 300, device=device, dtype=torch.float64)
    wanted = torch.softmax(x @ x.T / math.sqrt(300), -1) @ x
    torch.testing.assert_close(F.scaled_dot_product_attention(x, x, x), wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_the_quick_way_equals_the_operator(causal):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 5, 3, 8), dtype=np.float32) for _ in range(3)]
    found = []
    for quick in (True, False):
        inputs = [torch.from_numpy(array).requires_grad_() for array in arrays]
        q, k, v = (each.transpose(1, 2) for each in inputs)
        diagonal = 0 if causal else None
        if quick:
            out = quick_attention(q, k, v, 0.5, diagonal, True)
        else:
            out = attention(q, k, v, None, scale=0.5, diagonal=diagonal)[0]
        assert out.stride() == q.stride()
        out.pow(2).sum().backward()
        found.append((out.detach(), out.grad_fn.name(), *[each.grad for each in inputs]))
    for one, other in zip(*found, strict=True):
        assert one == other if isinstance(one, str) else torch.equal(one, other)


def test_the_quick_way_leaves_other_cases_to_the_operator():
    x = torch.ones(1, 2, 3, 4)
    wide, longer = torch.ones(1, 2, 400, 4), torch.ones(1, 2, 5, 4)
    assert quick_attention(x, longer, longer, 1.0, None, True) is not None
    for q, k, v, diagonal in (
        (x.double(), x.double(), x.double(), None),
        (x[0], x[0], x[0], None),
        (x, x, x[..., :2], None),
        (x[:, :1], x, x, None),
        (x[:, :, :0], x, x, None),
        (wide, wide, wide, None),
        (x, x, x, 1),
        (x, longer, longer, 0),
        (x[:, :, :1].expand(1, 2, 3, 4), x, x, None),
    ):
        assert quick_attention(q, k, v, 1.0, diagonal, True) is None
    with torch.autocast("cpu"):
        assert F.scaled_dot_product_attention(x, x, x).dtype == torch.bfloat16


@pytest.mark.parametrize("causal", [False, True])
def test_shared_heads_take_the_quick_way_where_no_gradient_is_recorded(causal):
    rng = np.random.default_rng(0)
    q, k, v = (torch.from_numpy(rng.standard_normal((2, 5, n, 8), dtype=np.float32)) for n in (6, 2, 2))
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    call = partial(F.scaled_dot_product_attention, is_causal=causal, scale=0.3)
    wanted = call(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    needed = call(q.clone().requires_grad_(), k, v, enable_gqa=True)
    for _ in range(2):
        found = call(q, k, v, enable_gqa=True)
        assert found.stride() == q.stride()
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(found, needed.detach())
    with pytest.raises(torch.errors.ShapeError, match="divide"):
        call(q, k[:, :1].repeat(1, 4, 1, 1), v, enable_gqa=True)
