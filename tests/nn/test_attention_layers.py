"""MultiheadAttention beside its formula written with loops: shapes, masks, projections, weights, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.functional.attention import multi_head
from tritensor.nn import functional as F

from ..needs import needs_triton

N, L, S, E, H = 2, 3, 4, 6, 2
UPPER = np.triu(np.ones((L, S), bool), 1)


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed + sum(shape)).standard_normal(shape))


def made(*args: Any, **kwargs: Any) -> nn.MultiheadAttention:
    """A layer in float64 all of whose parameters are random."""
    layer = nn.MultiheadAttention(*args, **kwargs).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=number))
    return layer


def weights_of(layer: nn.MultiheadAttention) -> Any:
    """The matrices and biases of the projections of query, key and value."""
    if layer.in_proj_weight is not None:
        matrices = np.split(layer.in_proj_weight.detach().numpy(), 3)
    else:
        matrices = [getattr(layer, f"{name}_proj_weight").detach().numpy() for name in "qkv"]
    bias = np.zeros(3 * layer.embed_dim) if layer.in_proj_bias is None else layer.in_proj_bias.detach().numpy()
    return zip(matrices, np.split(bias, 3), strict=True)


def formula(layer: nn.MultiheadAttention, query: Any, key: Any, value: Any, mask: np.ndarray) -> tuple[Any, Any]:
    """The result (N, L, E) and the weights (N, H, L, S) of inputs (N, L, E); the mask is added, (N, H, L, S)."""
    q, k, v = (
        x.numpy() @ matrix.T + bias for x, (matrix, bias) in zip((query, key, value), weights_of(layer), strict=True)
    )
    for name, extra in (("bias_k", "bias_v"), ("zero", "zero")):
        pair = None
        if name == "zero" and layer.add_zero_attn:
            pair = [np.zeros(layer.embed_dim)] * 2
        elif name != "zero" and layer.bias_k is not None:
            pair = [getattr(layer, each).detach().numpy().reshape(-1) for each in (name, extra)]
        if pair is not None:
            k, v = (np.concatenate([x, np.tile(p, (len(x), 1, 1))], 1) for x, p in zip((k, v), pair, strict=True))
            mask = np.concatenate([mask, np.zeros((*mask.shape[:-1], 1))], -1)
    size = layer.head_dim
    out, weights = np.zeros(q.shape), np.zeros(mask.shape)
    for n in range(len(q)):
        for h in range(layer.num_heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[n][:, part] @ k[n][:, part].T / np.sqrt(size) + mask[n, h]
            weights[n, h] = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
            out[n][:, part] = weights[n, h] @ v[n][:, part]
    bias = 0 if layer.out_proj.bias is None else layer.out_proj.bias.detach().numpy()
    return out @ layer.out_proj.weight.detach().numpy().T + bias, weights


def added(mask: np.ndarray | None, padding: np.ndarray | None) -> np.ndarray:
    """Boolean or floating masks as one that is added."""
    whole = np.zeros((N, H, L, S))
    for each, shape in ((mask, None), (padding, (N, 1, 1, S))):
        if each is not None:
            values = np.where(each, -np.inf, 0) if each.dtype == bool else each
            shape = shape or ((N, H, L, S) if values.ndim == 3 else (L, S))
            whole = whole + values.reshape(shape)
    return whole


PADDING = np.array([[False, False, False, True], [False, False, True, True]])
FLOATS = np.random.default_rng(0).standard_normal((N * H, L, S))
CASES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "plain": ({}, None, None),
    "without biases": ({"bias": False}, None, None),
    "other features": ({"kdim": 5, "vdim": 7}, None, None),
    "other features, no biases": ({"kdim": 5, "vdim": 6, "bias": False}, None, None),
    "boolean mask": ({}, UPPER, None),
    "mask of each head": ({}, FLOATS > 1, None),
    "floating masks": ({}, FLOATS, PADDING * -2.0),
    "padding": ({}, None, PADDING),
    "both masks": ({}, UPPER, PADDING),
    "everything": ({"add_bias_kv": True, "add_zero_attn": True}, UPPER, PADDING),
    "more keys": ({"add_bias_kv": True}, None, None),
    "a key of zeros": ({"add_zero_attn": True, "kdim": 3}, FLOATS[0], None),
}


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_formula(name: str, batch_first: bool) -> None:
    options, mask, padding = CASES[name]
    layer = made(E, H, batch_first=batch_first, **options)
    query, key, value = drawn(N, L, E), drawn(N, S, layer.kdim), drawn(N, S, layer.vdim, seed=1)
    expected, expected_weights = formula(layer, query, key, value, added(mask, padding))
    masks = {
        "attn_mask": None if mask is None else torch.tensor(mask),
        "key_padding_mask": None if padding is None else torch.tensor(padding),
    }
    inputs = [x if batch_first else x.transpose(0, 1) for x in (query, key, value)]
    out, weights = layer(*inputs, **masks)
    found = out if batch_first else out.transpose(0, 1)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10)
    np.testing.assert_allclose(weights.detach().numpy(), expected_weights.mean(1), rtol=1e-10)
    whole = layer(*inputs, average_attn_weights=False, **masks)[1]
    np.testing.assert_allclose(whole.detach().numpy(), expected_weights, rtol=1e-10)
    alone, nothing = layer(*inputs, need_weights=False, **masks)
    assert nothing is None
    np.testing.assert_allclose(alone.detach().numpy(), out.detach().numpy(), rtol=1e-10)
    if mask is None or mask.ndim == 2:  # a sequence without a batch
        masks["key_padding_mask"] = None if padding is None else torch.tensor(padding[1])
        one, its_weights = layer(query[1], key[1], value[1], **masks)
        np.testing.assert_allclose(one.detach().numpy(), expected[1], rtol=1e-10)
        np.testing.assert_allclose(its_weights.detach().numpy(), expected_weights.mean(1)[1], rtol=1e-10)


@pytest.mark.parametrize("kinds", [(0, 0, 0), (0, 1, 1), (0, 1, 2)])
def test_inputs_that_are_one_tensor_are_projected_by_one_product(
    kinds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = made(E, H, batch_first=True)
    tensors = [drawn(N, L, E, seed=number).requires_grad_() for number in range(3)]
    inputs = [tensors[kind] for kind in kinds]
    calls: list[Any] = []
    right = multi_head.linear

    def counted(*args: Any) -> Any:
        calls.append(args)
        return right(*args)

    monkeypatch.setattr(multi_head, "linear", counted)
    out, weights = layer(*inputs)
    assert len(calls) == len(set(kinds)) + 1
    copies = [x.detach().clone().requires_grad_() for x in inputs]
    other, _ = layer(*copies)
    np.testing.assert_allclose(out.detach().numpy(), other.detach().numpy(), rtol=1e-12)
    factor = drawn(N, L, E, seed=5)
    leaves = [tensors[kind] for kind in dict.fromkeys(kinds)]
    found = torch.autograd.grad((out * factor).sum(), [*leaves, layer.in_proj_weight, layer.in_proj_bias])
    again = torch.autograd.grad((other * factor).sum(), [*copies, layer.in_proj_weight, layer.in_proj_bias])
    for kind, gradient in zip(dict.fromkeys(kinds), found, strict=False):
        whole = sum(part for part, each in zip(again, kinds, strict=False) if each == kind)
        np.testing.assert_allclose(gradient.numpy(), whole.numpy(), rtol=1e-10, atol=1e-12)
    for mine, theirs in zip(found[-2:], again[-2:], strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)
    del weights


@pytest.mark.parametrize("need_weights", [True, False])
def test_gradients(need_weights: bool) -> None:
    layer = made(4, 2, add_bias_kv=True)
    x, memory = (drawn(2, 1, 4, seed=number).requires_grad_() for number in range(2))
    mask = torch.tensor([[0.0, 0.5], [0.2, -1.0]], dtype=torch.float64, requires_grad=True)

    def itself(x: Any, mask: Any, *_: Any) -> Any:
        return layer(x, x, x, attn_mask=mask, need_weights=need_weights)[0]

    def other(x: Any, memory: Any, weight: Any) -> Any:
        return layer(x, memory, memory, need_weights=need_weights)[0]

    assert torch.autograd.gradcheck(itself, (x, mask, layer.in_proj_weight, layer.bias_k))
    assert torch.autograd.gradcheck(other, (x, memory, layer.in_proj_weight))
    assert torch.autograd.gradgradcheck(itself, (x, mask))


def test_gradients_of_the_weights_alone() -> None:
    layer = made(4, 2)
    x = drawn(3, 1, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, x, x)[1], (x,))


def test_the_causal_hint_reads_no_mask() -> None:
    layer = made(E, H)
    x = drawn(L, N, E)
    mask = torch.triu(torch.ones(L, L), 1).bool()
    expected = layer(x, x, x, attn_mask=mask, need_weights=False)[0]
    unread = torch.zeros(L, L)
    hinted = layer(x, x, x, attn_mask=unread, need_weights=False, is_causal=True)[0]
    np.testing.assert_allclose(hinted.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    # with weights, or with padding, it is read
    open_ = layer(x, x, x)[0].detach().numpy()
    np.testing.assert_allclose(layer(x, x, x, attn_mask=unread, is_causal=True)[0].detach().numpy(), open_)
    padding = torch.zeros(N, L)
    found = layer(x, x, x, attn_mask=unread, is_causal=True, need_weights=False, key_padding_mask=padding)[0]
    np.testing.assert_allclose(found.detach().numpy(), open_, rtol=1e-12)


def test_a_query_without_keys() -> None:
    layer = made(E, H)
    x = drawn(L, N, E)
    nothing = torch.ones(L, L).bool()
    out, weights = layer(x, x, x, attn_mask=nothing)
    assert bool(out.isnan().all()) and bool(weights.isnan().all())
    alone = layer(x, x, x, attn_mask=nothing, need_weights=False)[0]
    np.testing.assert_allclose(alone.detach().numpy(), np.tile(layer.out_proj.bias.detach().numpy(), (L, N, 1)))


def test_dropout_of_weights() -> None:
    layer = made(E, H, dropout=0.999999)
    x = drawn(L, N, E)
    for need_weights in (True, False):
        out, weights = layer(x, x, x, need_weights=need_weights)
        np.testing.assert_allclose(out.detach().numpy(), np.tile(layer.out_proj.bias.detach().numpy(), (L, N, 1)))
        assert weights is None or not weights.any()
    layer.eval()
    assert layer(x, x, x)[1].sum().item() == pytest.approx(N * L)


def test_keys_and_values_that_were_projected_before() -> None:
    layer = made(E, H)
    x = drawn(L, N, E)
    keys, values = drawn(N * H, S, E // H), drawn(N * H, S, E // H, seed=1)
    options = [layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0]
    options += [layer.out_proj.weight, layer.out_proj.bias]
    out, weights = F.multi_head_attention_forward(x, x, x, E, H, *options, static_k=keys, static_v=values)
    query = F.linear(x, layer.in_proj_weight[:E], layer.in_proj_bias[:E])
    q = query.reshape(L, N * H, E // H).transpose(0, 1)
    expected = torch.softmax(q @ keys.mT / np.sqrt(E // H), -1)
    np.testing.assert_allclose(weights.detach().numpy(), expected.unflatten(0, (N, H)).mean(1).detach().numpy())
    heads = (expected @ values).transpose(0, 1).reshape(L, N, E)
    np.testing.assert_allclose(out.detach().numpy(), layer.out_proj(heads).detach().numpy(), rtol=1e-10)
    for wrong, words in (
        ({"static_k": keys[1:]}, r"expecting static_k.size\(0\) of 4, but got 3"),
        ({"static_v": values[..., 1:]}, r"expecting static_v.size\(2\) of 3, but got 2"),
    ):
        with pytest.raises(AssertionError, match=words):
            F.multi_head_attention_forward(x, x, x, E, H, *options, **wrong)


def test_what_it_holds_and_how_it_starts() -> None:
    layer = nn.MultiheadAttention(E, H, add_bias_kv=True)
    shapes = {name: tuple(value.shape) for name, value in layer.state_dict().items()}
    assert list(shapes.items()) == [
        ("in_proj_weight", (18, 6)),
        ("in_proj_bias", (18,)),
        ("bias_k", (1, 1, 6)),
        ("bias_v", (1, 1, 6)),
        ("out_proj.weight", (6, 6)),
        ("out_proj.bias", (6,)),
    ]
    bound = np.sqrt(6 / 24)
    values = layer.in_proj_weight.detach().numpy()
    assert 0.9 * bound < np.abs(values).max() <= bound
    assert not layer.in_proj_bias.any() and not layer.out_proj.bias.any() and bool(layer.bias_k.any())
    separate = nn.MultiheadAttention(E, H, kdim=3, bias=False, dtype=torch.float64)
    names = ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]
    assert list(separate.state_dict()) == names and separate.k_proj_weight.dtype is torch.float64
    assert repr(separate) == (
        "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=6, out_features=6, "
        "bias=False)\n)"
    )


X, Y = drawn(L, N, E), drawn(S, N, E)
WRONG: dict[str, tuple[Any, dict[str, Any], type[Exception]]] = {
    "query should be unbatched 2D or batched 3D tensor but received 4-D": ((X[None],) * 3, {}, AssertionError),
    "For batched (3-D) `query`, expected `key` and `value` to be 3-D but found 2-D and 3-D": (
        (X, X[0], X),
        {},
        AssertionError,
    ),
    "For batched (3-D) `query`, expected `key_padding_mask` to be `None` or 2-D but found 1-D tensor instead": (
        (X, X, X),
        {"key_padding_mask": torch.zeros(3)},
        AssertionError,
    ),
    "For unbatched (2-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D": (
        (X[0], X[0], X[0]),
        {"attn_mask": torch.zeros(3)},
        AssertionError,
    ),
    "Expected `attn_mask` shape to be (2, 2, 2) but got torch.Size([1, 2, 2])": (
        (X[0], X[0], X[0]),
        {"attn_mask": torch.zeros(1, 2, 2)},
        AssertionError,
    ),
    "only bool and floating types of attn_mask are supported": (
        (X, X, X),
        {"attn_mask": torch.zeros(3, 3, dtype=torch.int64)},
        AssertionError,
    ),
    "was expecting embedding dimension of 6, but got 5": ((X[..., 1:], X, X), {}, AssertionError),
    "key shape torch.Size([4, 2, 6]) does not match value shape torch.Size([3, 2, 6])": (
        (X, Y, X),
        {},
        AssertionError,
    ),
    "The shape of the 2D attn_mask is torch.Size([3, 3]), but should be (3, 4).": (
        (X, Y, Y),
        {"attn_mask": torch.zeros(3, 3)},
        RuntimeError,
    ),
    "The shape of the 3D attn_mask is torch.Size([2, 3, 4]), but should be (4, 3, 4).": (
        (X, Y, Y),
        {"attn_mask": torch.zeros(2, 3, 4)},
        RuntimeError,
    ),
    "Expected key_padded_mask.shape[0] to be 2, but got 3": (
        (X, Y, Y),
        {"key_padding_mask": torch.zeros(3, 4)},
        AssertionError,
    ),
    "Expected key_padded_mask.shape[1] to be 4, but got 3": (
        (X, Y, Y),
        {"key_padding_mask": torch.zeros(2, 3)},
        AssertionError,
    ),
    "shape '[3, 4, 3]' is invalid for input of size 18": ((X, X[:, :1], X[:, :1]), {}, RuntimeError),
    "Need attn_mask if specifying the is_causal hint.": ((X, X, X), {"is_causal": True}, RuntimeError),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_fit_is_refused(words: str) -> None:
    inputs, options, kind = WRONG[words]
    with pytest.raises(kind) as raised:
        made(E, H)(*inputs, **options)
    assert str(raised.value).startswith(words)


def test_layers_that_cannot_be() -> None:
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(6, 4)
    with pytest.raises(ValueError, match="embed_dim and num_heads must be greater than 0, got embed_dim=6 and num_h"):
        nn.MultiheadAttention(6, 0)


def test_the_function_refuses_parameters_that_do_not_fit() -> None:
    weight, out = drawn(18, 6), drawn(6, 6)

    def call(heads: int = H, matrix: Any = weight, more: Any = (None, None), value: Any = X, **options: Any) -> Any:
        return F.multi_head_attention_forward(
            X, X, value, E, heads, matrix, None, *more, False, 0.0, out, None, **options
        )

    separate = {"use_separate_proj_weight": True, "q_proj_weight": out, "k_proj_weight": out, "v_proj_weight": out}
    for words, found in (
        ("embed_dim 6 not divisible by num_heads 4", {"heads": 4}),
        ("use_separate_proj_weight is False but in_proj_weight is None", {"matrix": None}),
        ("use_separate_proj_weight is True but k_proj_weight is None", separate | {"k_proj_weight": None}),
        (
            "expecting value weights shape of (6, 6), but got torch.Size([18, 6])",
            separate | {"v_proj_weight": weight},
        ),
        ("key's sequence and batch dims torch.Size([3, 2]) do not match value's", separate | {"value": Y}),
        ("bias_k is set but bias_v is None", {"more": (drawn(1, 1, 6), None)}),
        ("bias_v is set but bias_k is None", {"more": (None, drawn(1, 1, 6))}),
        (
            "bias cannot be added to static key.",
            {"more": (drawn(1, 1, 6), drawn(1, 1, 6)), "static_k": drawn(4, 3, 3)},
        ),
        (
            "bias cannot be added to static value.",
            {"more": (drawn(1, 1, 6), drawn(1, 1, 6)), "static_v": drawn(4, 3, 3)},
        ),
    ):
        with pytest.raises(AssertionError) as raised:
            call(**found)
        assert str(raised.value).startswith(words)


def test_masks_of_two_kinds_are_told_of() -> None:
    layer = made(E, H)
    with pytest.warns(UserWarning, match="Support for mismatched key_padding_mask and attn_mask is deprecated"):
        layer(X, X, X, attn_mask=torch.zeros(L, L), key_padding_mask=torch.zeros(N, L).bool())


@needs_triton
def test_on_a_device_as_on_the_cpu() -> None:
    layer = made(4, 2).float()
    x = drawn(3, 2, 4).float()
    mask = torch.triu(torch.ones(3, 3), 1).bool()

    def run(layer: Any, x: Any, mask: Any) -> list[Any]:
        x = x.detach().requires_grad_()
        out, weights = layer(x, x, x, attn_mask=mask)
        (out.sum() + layer(x, x, x, need_weights=False)[0].square().sum()).backward()
        return [each.cpu().numpy() for each in (out.detach(), weights.detach(), x.grad, layer.in_proj_weight.grad)]

    expected = run(layer, x, mask)
    with torch.cuda.simulate():
        layer.zero_grad()
        found = run(layer.to("cuda"), x.to("cuda"), mask.to("cuda"))
        for mine, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-6)


# ---- beside PyTorch ---------------------------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("words", WRONG)
def test_pytorch_raises_the_same(words: str) -> None:
    peer = pytest.importorskip("torch")
    inputs, options, kind = WRONG[words]
    layer = peer.nn.MultiheadAttention(E, H).double()
    with pytest.raises(kind) as raised:
        layer(
            *(peer.tensor(x.numpy()) for x in inputs),
            **{
                name: peer.tensor(value.numpy()) if isinstance(value, torch.Tensor) else value
                for name, value in options.items()
            },
        )
    assert str(raised.value).startswith(words)


@pytest.mark.peer
@pytest.mark.parametrize("name", CASES)
def test_pytorch_gives_the_same(name: str) -> None:
    peer = pytest.importorskip("torch")
    options, mask, padding = CASES[name]
    own = made(E, H, batch_first=True, **options)
    theirs = peer.nn.MultiheadAttention(E, H, batch_first=True, **options).double()
    theirs.load_state_dict({name: peer.tensor(value.numpy()) for name, value in own.state_dict().items()})
    assert list(own.state_dict()) == list(theirs.state_dict()) and repr(own) == repr(theirs)
    inputs = drawn(N, L, E), drawn(N, S, own.kdim), drawn(N, S, own.vdim, seed=1)
    for need_weights in (True, False):
        found = []
        for library, layer in ((torch, own), (peer, theirs)):
            x = [library.tensor(each.numpy()).requires_grad_() for each in inputs]
            masks = {
                key: None if each is None else library.tensor(each)
                for key, each in (("attn_mask", mask), ("key_padding_mask", padding))
            }
            out, weights = layer(*x, need_weights=need_weights, average_attn_weights=False, **masks)
            loss = (out * out).sum() if weights is None else (out * out).sum() + (weights * weights).sum()
            layer.zero_grad()
            loss.backward()
            parts = [out.detach(), *(each.grad for each in x), *(each.grad for each in layer.parameters())]
            found.append([each.numpy() for each in parts])
        for mine, wanted in zip(*found, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-8, atol=1e-10)
