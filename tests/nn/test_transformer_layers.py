"""Layers, encoders and decoders of transformers: what they are made of, masks, padding, errors, and beside PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

from ..needs import needs_triton

E = 4

pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed + sum(shape)).standard_normal(shape))


def filled(module: Any) -> Any:
    """A module in float64 whose parameters depend on their place alone; in evaluation mode."""
    with torch.no_grad():
        for number, parameter in enumerate(module.double().parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=number))
    return module.eval()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_is_its_parts(norm_first: bool) -> None:
    layer = filled(nn.TransformerEncoderLayer(E, 2, 8, norm_first=norm_first, batch_first=True, layer_norm_eps=1e-3))
    x = drawn(2, 3, E)
    padding = torch.tensor([[False, False, True], [False, True, True]])
    mask = torch.triu(torch.ones(3, 3), 1).bool()

    def attend(x: Any) -> Any:
        return layer.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding)[0]

    def feed(x: Any) -> Any:
        return layer.linear2(F.relu(layer.linear1(x)))

    if norm_first:
        y = x + attend(layer.norm1(x))
        expected = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + attend(x))
        expected = layer.norm2(y + feed(y))
    close(layer(x, mask, padding), expected)
    assert layer.norm1.eps == layer.norm2.eps == 1e-3


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_layer_is_its_parts(norm_first: bool) -> None:
    layer = filled(nn.TransformerDecoderLayer(E, 2, 8, activation="gelu", norm_first=norm_first))
    x, memory = drawn(3, 2, E), drawn(5, 2, E)
    tgt_mask, memory_mask = drawn(3, 3), drawn(3, 5)
    padding = torch.tensor([[False] * 4 + [True], [False] * 5]).double()

    def attend(x: Any) -> Any:
        return layer.self_attn(x, x, x, attn_mask=tgt_mask)[0]

    def read(x: Any) -> Any:
        return layer.multihead_attn(x, memory, memory, attn_mask=memory_mask, key_padding_mask=padding * -9.0)[0]

    def feed(x: Any) -> Any:
        return layer.linear2(F.gelu(layer.linear1(x)))

    if norm_first:
        y = x + attend(layer.norm1(x))
        y = y + read(layer.norm2(y))
        expected = y + feed(layer.norm3(y))
    else:
        y = layer.norm1(x + attend(x))
        y = layer.norm2(y + read(y))
        expected = layer.norm3(y + feed(y))
    close(layer(x, memory, tgt_mask, memory_mask, memory_key_padding_mask=padding * -9.0), expected)


def test_activations_by_name_function_or_module() -> None:
    x = drawn(3, 2, E)
    found = []
    for activation in ("gelu", F.gelu, nn.GELU(), lambda x: F.gelu(x)):
        layer = nn.TransformerEncoderLayer(E, 2, 8, 0.0, activation)
        found.append(filled(layer)(x))
        close(found[-1], found[0])
    assert "(activation): GELU(approximate='none')" in repr(nn.TransformerEncoderLayer(E, 2, 8, 0.0, nn.GELU()))
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        nn.TransformerDecoderLayer(E, 2, 8, 0.0, "tanh")


def test_dropout_is_everywhere() -> None:
    layer = filled(nn.TransformerDecoderLayer(E, 2, 8, dropout=0.999999)).train()
    x = drawn(3, 2, E)
    expected = x
    for norm in (layer.norm1, layer.norm2, layer.norm3):
        expected = norm(expected)
    close(layer(x, x), expected)
    for part in (layer.dropout, layer.dropout1, layer.dropout2, layer.dropout3):
        assert part.p == 0.999999
    assert layer.self_attn.dropout == layer.multihead_attn.dropout == 0.999999


def test_a_stack_has_copies_and_a_norm() -> None:
    layer, norm = nn.TransformerEncoderLayer(E, 2, 8, batch_first=True), nn.LayerNorm(E)
    stack = nn.TransformerEncoder(layer, 2, norm)
    assert len(stack.layers) == stack.num_layers == 2 and stack.norm is norm
    assert len({id(parameter) for parameter in [*stack.parameters(), *layer.parameters()]}) == 3 * 12 + 2
    filled(stack)
    x = drawn(2, 3, E)
    close(stack(x), norm(stack.layers[1](stack.layers[0](x))))
    other = filled(nn.TransformerDecoder(nn.TransformerDecoderLayer(E, 2, 8), 2))
    memory = drawn(5, 2, E)
    x = drawn(3, 2, E)
    close(other(x, memory), other.layers[1](other.layers[0](x, memory), memory))


def test_the_causal_mask_is_found() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    inf = float("inf")
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]] and mask.dtype is torch.float64
    seen: list[bool] = []

    class Spy(nn.TransformerEncoderLayer):
        def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = 0) -> Any:
            seen.append(is_causal)
            return src

    for batch_first in (True, False):
        stack = nn.TransformerEncoder(Spy(E, 2, 8, batch_first=batch_first), 1, enable_nested_tensor=False)
        x = drawn(2, 3, E) if batch_first else drawn(3, 2, E)
        for given, hint in ((mask, None), (mask.isinf(), None), (mask * 0, None), (mask, False), (None, None)):
            stack(x, given, is_causal=hint)
        stack(drawn(3, E), mask)
        stack(x, mask * 0, is_causal=True)
        stack(x, torch.zeros(1, 3), is_causal=None)
    assert seen == [True, True, False, False, False, True, True, False] * 2


def test_padded_positions_are_zero_where_nothing_is_learned() -> None:
    layer = nn.TransformerEncoderLayer(E, 2, 8, batch_first=True)
    stack = filled(nn.TransformerEncoder(layer, 2, nn.LayerNorm(E)))
    x = drawn(2, 3, E)
    padding = torch.tensor([[False, False, True], [False, True, True]])
    expected = stack(x, src_key_padding_mask=padding)  # parameters require gradients
    zeros = expected.masked_fill(padding.unsqueeze(-1), 0)
    bare = nn.TransformerEncoder(layer, 0)
    bare.layers, bare.norm = stack.layers, None
    with torch.no_grad():
        plain = bare(x, src_key_padding_mask=padding)
        assert not plain[padding].any() and bool(plain[~padding].all())
        found = stack(x, src_key_padding_mask=padding)
        close(found[~padding], zeros[~padding])
        close(found[padding], stack.norm.bias.expand(3, E))
        # not where padding is not at the end, unless nobody looks, nor with a mask, nor in training
        close(bare(x, src_key_padding_mask=~padding), bare(x, torch.zeros(3, 3).bool(), ~padding))
        assert bool(bare(x, src_key_padding_mask=~padding)[~padding].all())
        bare.mask_check = False
        assert not bare(x, src_key_padding_mask=~padding)[~padding].any()
        assert bool(bare(x[0], src_key_padding_mask=padding[0]).all())
        bare.train()
        assert bool(bare(x, src_key_padding_mask=padding).all())
    bare.eval().requires_grad_(False)
    assert not bare(x, src_key_padding_mask=padding)[padding].any()
    assert bool(bare(x.requires_grad_(), src_key_padding_mask=padding)[padding].all())


REASONS: dict[str, dict[str, Any]] = {
    "encoder_layer.norm_first is True": {"norm_first": True},
    "encoder_layer.self_attn.batch_first is False": {"batch_first": False},
    "encoder_layer.self_attn has no bias": {"bias": False},
    "encoder_layer.activation is neither relu nor gelu": {"activation": torch.tanh},
    "encoder_layer.self_attn.num_heads is odd": {"nhead": 1},
}


@pytest.mark.parametrize("reason", REASONS)
def test_layers_that_leave_out_no_padding_are_told_of(reason: str) -> None:
    layer = nn.TransformerEncoderLayer(**({"d_model": E, "nhead": 2, "batch_first": True} | REASONS[reason]))
    with pytest.warns(UserWarning, match="enable_nested_tensor is True") as told:
        stack = nn.TransformerEncoder(layer, 1)
    assert str(told[0].message) == (
        "enable_nested_tensor is True, but padded positions will not be set to zero in evaluation\n"
        f"  {reason}\n"
        "  Fix: pass enable_nested_tensor=False, which gives the same results"
    )
    assert told[0].filename == __file__
    assert not stack.use_nested_tensor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def test_other_layers_that_leave_out_no_padding() -> None:
    layer = nn.TransformerEncoderLayer(E, 2, 8, batch_first=True)
    layer.norm2.eps = 1e-3
    with pytest.warns(UserWarning, match=r"encoder_layer.norm1.eps differs from that of norm2"):
        nn.TransformerEncoder(layer, 1)
    layer.self_attn._qkv_same_embed_dim = False
    with pytest.warns(UserWarning, match=r"self_attn has keys or values of another size"):
        nn.TransformerEncoder(layer, 1)
    with pytest.warns(UserWarning, match=r"encoder_layer is not a TransformerEncoderLayer"):
        nn.TransformerEncoder(nn.Identity(), 1)


def test_a_transformer_is_an_encoder_and_a_decoder() -> None:
    model = filled(nn.Transformer(E, 2, 1, 2, 8, batch_first=True, norm_first=True, activation="gelu"))
    src, tgt = drawn(2, 5, E), drawn(2, 3, E)
    masks = {"src_mask": drawn(5, 5), "tgt_mask": drawn(3, 3), "memory_mask": drawn(3, 5)}
    padding = torch.tensor([[False] * 5, [False] * 4 + [True]]).double() * -1.5
    memory = model.encoder(src, masks["src_mask"], padding)
    expected = model.decoder(tgt, memory, masks["tgt_mask"], masks["memory_mask"], None, padding)
    found = model(src, tgt, **masks, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    close(found, expected)
    assert len(model.encoder.layers) == 1 and len(model.decoder.layers) == 2
    assert isinstance(model.encoder.norm, nn.LayerNorm) and isinstance(model.decoder.norm, nn.LayerNorm)
    weight = nn.Transformer(E, 2, 1, 1, 32).encoder.layers[0].linear1.weight.detach().numpy()
    assert 1 / np.sqrt(E) > np.sqrt(6 / 36) >= np.abs(weight).max()  # xavier_uniform_, not what Linear draws


def test_a_transformer_of_other_parts() -> None:
    class Encoder(nn.Module):
        def forward(self, src: Any, **options: Any) -> Any:
            return src + 1

    class Decoder(nn.Module):
        def forward(self, tgt: Any, memory: Any, **options: Any) -> Any:
            return tgt + memory.sum()

    model = nn.Transformer(E, custom_encoder=Encoder(), custom_decoder=Decoder())
    assert not list(model.parameters())
    x = torch.ones(2, 1, E)
    assert model(x, x).tolist() == (torch.ones(2, 1, E) * 17).tolist()


@pytest.mark.parametrize(
    ("batch_first", "src", "tgt", "words"),
    [
        (False, (3, 2, E), (3, 1, E), "the batch number of src and tgt must be equal"),
        (True, (2, 3, E), (1, 3, E), "the batch number of src and tgt must be equal"),
        (True, (2, 3, E), (2, 3, 5), "the feature number of src and tgt must be equal to d_model"),
        (True, (3, 5), (3, E), "the feature number of src and tgt must be equal to d_model"),
    ],
)
def test_sequences_that_do_not_fit(batch_first: bool, src: Any, tgt: Any, words: str) -> None:
    model = nn.Transformer(E, 2, 1, 1, 8, batch_first=batch_first)
    with pytest.raises(RuntimeError, match=words):
        model(torch.ones(src), torch.ones(tgt))


def test_masks_of_two_kinds_are_told_of() -> None:
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, 2, 8, batch_first=True), 1)
    with pytest.warns(UserWarning, match="Support for mismatched src_key_padding_mask and mask is deprecated") as told:
        stack(drawn(2, 3, E).float(), torch.zeros(3, 3), torch.zeros(2, 3).bool())
    assert len(told) == 1
    with pytest.warns(UserWarning, match="mismatched src_key_padding_mask and src_mask is deprecated"):
        stack.layers[0](drawn(2, 3, E).float(), torch.zeros(3, 3), torch.zeros(2, 3).bool())


@pytest.mark.thorough
@needs_triton
def test_on_a_device_as_on_the_cpu() -> None:
    model = filled(nn.Transformer(E, 2, 1, 1, 8, dropout=0.0)).float().train()
    src, tgt = drawn(3, 1, E).float(), drawn(2, 1, E).float()
    mask = nn.Transformer.generate_square_subsequent_mask(2)

    def run(model: Any, *inputs: Any) -> list[Any]:
        model.zero_grad()
        src, tgt, mask = inputs
        out = model(src, tgt, tgt_mask=mask)
        out.square().sum().backward()
        parameters = dict(model.named_parameters())
        first = parameters["encoder.layers.0.self_attn.in_proj_weight"].grad
        return [out.detach().cpu().numpy(), first.cpu().numpy()]

    expected = run(model, src, tgt, mask)
    with torch.cuda.simulate():
        found = run(model.to("cuda"), src.to("cuda"), tgt.to("cuda"), mask.to("cuda"))
        for mine, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-3, atol=1e-5)


# ---- beside PyTorch ---------------------------------------------------------------------------------------------


def both(build: Any) -> tuple[Any, Any, Any]:
    """A module of each library with equal weights, in evaluation mode, and PyTorch."""
    peer = pytest.importorskip("torch")
    own, theirs = filled(build(torch)), build(peer).double().eval()
    theirs.load_state_dict({name: peer.tensor(value.numpy()) for name, value in own.state_dict().items()})
    assert list(own.state_dict()) == list(theirs.state_dict()) and repr(own) == repr(theirs)
    return own, theirs, peer


@pytest.mark.peer
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformers_of_both_libraries(batch_first: bool, norm_first: bool, masked: bool) -> None:
    own, theirs, peer = both(
        lambda library: library.nn.Transformer(
            E, 2, 2, 2, 8, 0.0, "gelu", batch_first=batch_first, norm_first=norm_first
        )
    )
    src, tgt = drawn(2, 5, E).numpy(), drawn(2, 3, E).numpy()
    if not batch_first:
        src, tgt = src.swapaxes(0, 1).copy(), tgt.swapaxes(0, 1).copy()
    padding = np.array([[False] * 5, [False] * 3 + [True] * 2])
    masks = {"tgt_mask": np.triu(np.ones((3, 3), bool), 1)}
    if masked:
        masks |= {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    found = []
    for library, model in ((torch, own), (peer, theirs)):
        arguments = [library.tensor(x, requires_grad=True) for x in (src, tgt)]
        given = {name: library.tensor(mask) for name, mask in masks.items()}
        out = model(*arguments, **given)
        (out * out).sum().backward()
        with library.no_grad():  # where PyTorch has kernels of its own for whole layers
            again = model(*arguments, **given)
        gradients = [each.grad for each in (*arguments, *model.parameters())]
        found.append([each.numpy() for each in (out.detach(), again, *gradients)])
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.peer
def test_padded_positions_of_both_libraries() -> None:
    own, theirs, peer = both(
        lambda library: library.nn.TransformerEncoder(
            library.nn.TransformerEncoderLayer(E, 2, 8, batch_first=True), 2, library.nn.LayerNorm(E)
        )
    )
    x = drawn(3, 3, E).numpy()
    for padding in ([[False, False, True], [False, True, True], [False] * 3], [[True, False, False], [False] * 3] * 2):
        rows = padding[:3]
        with torch.no_grad(), peer.no_grad():
            found = own(torch.tensor(x), src_key_padding_mask=torch.tensor(rows))
            wanted = theirs(peer.tensor(x), src_key_padding_mask=peer.tensor(rows))
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.peer
@pytest.mark.parametrize("reason", REASONS)
def test_pytorch_warns_of_the_same_layers(reason: str) -> None:
    peer = pytest.importorskip("torch")
    options = {"d_model": E, "nhead": 2, "batch_first": True} | REASONS[reason]
    options |= {"activation": peer.tanh} if "activation" in options else {}
    with pytest.warns(UserWarning, match="enable_nested_tensor is True"):
        peer.nn.TransformerEncoder(peer.nn.TransformerEncoderLayer(**options), 1)
