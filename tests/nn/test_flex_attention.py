"""`flex_attention`: functions of scores, masks of blocks, gradients and devices; PyTorch's results by `-m peer`."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import tritensor
from tritensor.kernels.attention.family import attention
from tritensor.nn.attention import flex_attention as flex

from ..needs import needs_triton

HEADS, ROWS, KEYS = 4, 37, 37
FEW, MORE = (2, 2, 37, 8), (3, 4, 37, 8)


def tables(torch, requires_grad=False, device="cpu"):
    """What functions of scores read: a bias of each head and distance, slopes, a matrix, and documents."""
    rng = np.random.default_rng(1)
    floats = rng.standard_normal((HEADS, ROWS + KEYS)), rng.random(HEADS), rng.standard_normal((2, 1, ROWS, KEYS))
    found = [torch.from_numpy(each).to(device).requires_grad_(requires_grad) for each in floats]
    return *found, torch.from_numpy(rng.integers(0, 3, (2, ROWS)).cumsum(-1)).to(device)


def functions(torch, bias, slopes, matrix, documents):
    """Functions of scores and masks, by name."""
    window = lambda b, h, q, k: (q >= k) & (q - k < 9)  # noqa: E731
    document = lambda b, h, q, k: documents[b, q] == documents[b, k]  # noqa: E731
    return {
        "nothing": (None, None),
        "causal": (None, lambda b, h, q, k: q >= k),
        "relative": (lambda score, b, h, q, k: score + (q - k), None),
        "alibi": (lambda score, b, h, q, k: score + (k - q) * torch.exp2(-(h + 1) * 8.0 / HEADS), None),
        "capped window": (lambda score, b, h, q, k: torch.tanh(score / 2) * 2, window),
        "learned": (lambda score, b, h, q, k: score * slopes[h] + bias[h, q - k + KEYS], None),
        "learned of a batch": (lambda score, b, h, q, k: score + matrix[b][0][q][k], document),
        "documents": (None, document),
        "prefix": (None, lambda b, h, q, k: (k < 5) | (q >= k)),
        "heads": (None, lambda b, h, q, k: (q >= k) & (q - k < 3 + 9 * h)),
        "blind": (
            lambda score, b, h, q, k: torch.where(q < 20, score, -float("inf")),
            lambda b, h, q, k: k > 30 - 4 * q,
        ),
    }


NAMES = list(functions(tritensor, *tables(tritensor)))


def operands(torch, few=HEADS, requires_grad=False, device="cpu", dtype=np.float64):
    rng = np.random.default_rng(0)
    shapes = (2, HEADS, ROWS, 8), (2, few, KEYS, 8), (2, few, KEYS, 6), (2, HEADS, ROWS, 6)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return [torch.from_numpy(each).to(device).requires_grad_(requires_grad) for each in arrays]


def block_mask(flex, name, mask, size=16, device="cpu"):
    own = {"documents": (2, None), "heads": (None, HEADS), "learned of a batch": (2, HEADS)}.get(name, (None, None))
    return mask and flex.create_block_mask(mask, *own, ROWS, KEYS, device=device, BLOCK_SIZE=size)


def dense(torch, q, k, v, score_mod, mask):
    """The same without blocks, of broadcast indices."""
    b, h, rows, keys = (
        torch.arange(size, device=q.device).reshape(-1, *(1,) * (3 - dim))
        for dim, size in enumerate((2, HEADS, ROWS, KEYS))
    )
    k, v = (x.repeat_interleave(HEADS // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(8)
    if score_mod is not None:
        scores = score_mod(scores, b, h, rows, keys)
    if mask is not None:
        scores = scores.masked_fill(~mask(b, h, rows, keys), -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    seen = scores.masked_fill(blind, 0)
    logs = seen.logsumexp(-1).masked_fill(blind[..., 0], -math.inf)
    return seen.softmax(-1).masked_fill(blind, 0) @ v, logs, scores.amax(-1)


def gradients(out, weight, *tensors):
    (out * weight).sum().backward()
    return [None if each.grad is None else each.grad.cpu().numpy() for each in tensors]


def agree(found, wanted, **tolerance):
    for own, other in zip(found, wanted, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own, other, **{"rtol": 1e-9, "atol": 1e-9, **tolerance})


@pytest.mark.parametrize("few", [HEADS, 2])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "learned of a batch"])
def test_blocks_agree_with_all_scores(name, few):
    results = []
    for blocks in (True, False):
        q, k, v, weight = operands(tritensor, few, requires_grad=True)
        learned = tables(tritensor, requires_grad=True)
        score_mod, mask = functions(tritensor, *learned)[name]
        if blocks:
            call = functools.partial(flex.flex_attention, enable_gqa=True, score_mod=score_mod)
            call = functools.partial(call, q, k, v, block_mask=block_mask(flex, name, mask))
            out = call()
            with tritensor.no_grad():
                quick, aux = call(return_aux=flex.AuxRequest(True, True))
                fused, logs = call(return_aux=flex.AuxRequest(lse=True))
            agree([quick, fused, logs.lse], [out.detach(), out.detach(), aux.lse])
        else:
            out, *aux = dense(tritensor, q, k, v, score_mod, mask)
        logs, largest = (x.detach().numpy() for x in aux)
        results.append([out.detach().numpy(), logs, largest, *gradients(out, weight.detach(), q, k, v, *learned[:3])])
    agree(*results)


def test_a_gradient_goes_through_the_logarithms():
    results = []
    for blocks in (True, False):
        q, k, v, _ = operands(tritensor, requires_grad=True)
        mask = functions(tritensor, *tables(tritensor))["causal"][1]
        if blocks:
            own = block_mask(flex, "causal", mask)
            _, logs = deprecated(q, k, v, block_mask=own)
            with tritensor.no_grad():  # the kernels have them, too
                agree(
                    [flex.flex_attention(q, k, v, block_mask=own, return_aux=flex.AuxRequest(lse=True))[1].lse],
                    [logs.detach()],
                )
        else:
            logs = dense(tritensor, q, k, v, None, mask)[1]
        results.append(gradients(logs, 1, q, k))
    agree(*results)


def deprecated(*args, **options):
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        return flex.flex_attention(*args, return_lse=True, **options)


@needs_triton
@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_devices_agree_with_the_cpu(name):
    results = []
    with tritensor.cuda.simulate():
        for device in ("cpu", "cuda"):
            q, k, v, weight = operands(tritensor, 2, True, device, np.float32)
            learned = tables(tritensor, True, device)
            learned = [x.float().detach().requires_grad_() for x in learned[:3]] + [learned[3]]
            score_mod, mask = functions(tritensor, *learned)[name]
            own = block_mask(flex, name, mask, device=device)
            out = flex.flex_attention(q, k, v, score_mod, own, enable_gqa=True)
            found = gradients(out, weight.detach(), q, k, v, *learned[:3])
            results.append([out.detach().cpu().numpy(), *found])
    agree(*results, rtol=1e-4, atol=1e-5)


def test_masks_of_blocks():
    mask = flex.create_block_mask(lambda b, h, q, k: q >= k + 4 * h, None, 2, 10, 8, "cpu", BLOCK_SIZE=(4, 2))
    assert mask.shape == (1, 2, 10, 8) and mask.numel() == 160 and mask.BLOCK_SIZE == (4, 2)
    assert mask.to_dense()[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert mask.full_kv_num_blocks[0].tolist() == [[0, 2, 0], [0, 0, 0]]  # the last row is no whole block
    assert mask.q_num_blocks[0, 0].tolist() == [2, 2, 2, 2] and mask.full_q_num_blocks[0, 0].tolist() == [1, 1, 0, 0]
    assert mask.sparsity() == pytest.approx(100 * (1 - (10 + 5) * 8 / 160))
    part = mask[0, 1, tritensor.tensor([1])]
    assert part.shape == (1, 1, 10, 8) and part.to_dense().tolist() == [[[[1, 1, 0, 0]]]]
    assert mask[-1, -1].to_dense().equal(mask.to_dense()[:, 1:]) and mask.to("cpu").to_dense().equal(mask.to_dense())
    small = mask._adjust(8, 5)
    assert small.shape == (1, 2, 8, 5) and small.to_dense()[0, 0].tolist() == [[1, 1, 0], [1, 1, 1]]
    assert "mask_mod=<lambda>" in repr(mask) and "kv_indices=tritensor.Size([1, 2, 3, 4])" in repr(mask)
    assert str(mask).startswith("BlockMask(shape=(1, 2, 10, 8), sparsity=25.00%, \n(0, 0)\n████    \n████████")
    assert mask.to_string((2, 2), limit=1).splitlines()[:3] == ["(0, 0)", "██░░", "████"]
    assert mask.to_string(-1, limit=1).splitlines()[-3] == "..."
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        mask[2]
    whole = flex.BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, BLOCK_SIZE=4, compute_q_blocks=False)
    assert whole.shape == (1, 2, 12, 16) and whole.q_indices is None and whole.full_kv_indices is None
    together = flex.create_block_mask(
        noted := flex.or_masks(flex.noop_mask), 1, 1, 8, 8, "cpu", BLOCK_SIZE=4, separate_full_blocks=False
    )
    assert together.kv_num_blocks.tolist() == [[[2, 2]]] and together.mask_mod is noted
    below = functools.partial(flex.create_mask, Q_LEN=3, KV_LEN=3, device="cpu")
    scored = below(lambda score, b, h, q, k: tritensor.where(q > k, score, -math.inf), None, None)
    assert scored.equal(tritensor.ones(1, 1, 3, 3, dtype=bool).tril(-1))
    both = below(flex.and_masks(lambda b, h, q, k: q > k, lambda b, h, q, k: k > 0), 2, None)
    assert both.shape == (2, 1, 3, 3) and both[1, 0].nonzero().tolist() == [[2, 1]]


def test_blocks_are_read_again_when_they_change():
    q, k, v, _ = operands(tritensor)
    mask = block_mask(flex, "causal", lambda b, h, q, k: q >= k)
    before = flex.flex_attention(q, k, v, block_mask=mask)
    mask.full_kv_num_blocks.zero_()
    mask.kv_num_blocks.zero_()
    assert not flex.flex_attention(q, k, v, block_mask=mask).any() and before.any()
    read = id(mask.kv_num_blocks)
    for _ in range(99):
        mask.kv_num_blocks = mask.kv_num_blocks.clone()
        assert id(mask.kv_num_blocks) != read
    mask.mask_mod = None  # which is not asked
    assert not flex.flex_attention(q, k, v, block_mask=mask).any()


def test_causal_masks_are_recognised():
    q, k, v = (x[:, :, :32] for x in operands(tritensor)[:3])
    shares = lambda b, h, rows, keys: (rows >= keys) & (rows + keys != 5)  # noqa: E731
    for mask, causal in ((lambda b, h, rows, keys: rows >= keys, True), (shares, False)):
        own, called = flex.create_block_mask(mask, None, None, 32, 32, "cpu", 16), []

        def noted(*args, diagonal, called=called, **options):
            called.append(diagonal)
            return attention(*args, diagonal=diagonal, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flex, "attention", noted)
            found = flex.flex_attention(q, k, v, block_mask=own)
        assert (called == [0]) is causal and (None in called) is not causal
        kept = flex.create_mask(mask, None, None, 32, 32, "cpu")
        wanted = tritensor.nn.functional.scaled_dot_product_attention(q, k, v, kept)
        tritensor.testing.assert_close(found, wanted)


def test_scores_are_computed_a_few_at_a_time():
    x = tritensor.randn(1, 1, 512, 4)
    sizes = []

    def note(score, b, h, q, k):
        return score

    def counted(function, order, *arguments, evaluated=flex.evaluated):
        sizes.append(arguments[0][0].numel() * (arguments[0][1] == "nqk"))  # of scores, not of the mask
        return evaluated(function, order, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flex, "evaluated", counted)
        patch.setattr(flex, "SCORES", 1 << 17)
        out = flex.flex_attention(x, x, x, note)
        assert sum(sizes) == 512**2 and max(sizes) == flex.SCORES
        sizes.clear()
        window = flex.create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 32), None, None, 512, 512, "cpu", 16)
        flex.flex_attention(x, x, x, note, window)
        assert sum(sizes) == (1 + 2 + 30 * 3) * 16**2  # of 32 * 32 blocks
    tritensor.testing.assert_close(out, flex.flex_attention(x, x, x))


@pytest.mark.parametrize(
    ("changed", "options", "error", "words"),
    [
        ({"key": FEW, "value": FEW}, {}, ValueError, "Expect query and key/value to have the same number of heads"),
        ({"key": (2, 3, 37, 8), "value": (2, 3, 37, 8)}, {"enable_gqa": True}, ValueError, "Expect number of query"),
        ({"key": (2, 4, 37, 6)}, {}, ValueError, "Expect query and key/value to have the same embedding dimension"),
        ({"key": MORE, "value": MORE}, {}, ValueError, "Expect query and key/value to have the same batch size"),
        ({"key": MORE, "value": MORE}, {"mask": 37}, RuntimeError, "Bq and Bkv must broadcast. Got Bq=2"),
        ({"value": (2, 4, 36, 8)}, {}, ValueError, "key and value have shapes"),
        ({"query": (8,)}, {}, ValueError, "Expected query, key, and value to all be  at least 2 dimensional"),
        ({"query": (4, 37, 8)}, {}, NotImplementedError, "NYI: query, key, and value must be 4D tensors"),
        ({}, {"mask": 38}, ValueError, "block_mask was created for block_mask.shape=(1, 1, 37, 38) but got q_len=37"),
        ({}, {"mask": 37, "own": (3, 1)}, RuntimeError, "block_mask has batch and heads (3, 1), query 2 and 4"),
        ({}, {"mask": 37, "index": 0}, RuntimeError, "Cannot use mask_mod from a sliced BlockMask"),
        ({}, {"kernel_options": {"BACKEND": "FAST"}}, ValueError, "Invalid BACKEND value 'FAST'"),
        ({}, {"return_lse": True, "return_aux": flex.AuxRequest()}, ValueError, "Cannot specify both return_lse and"),
    ],
)
def test_bad_arguments(changed, options, error, words):
    given = [tritensor.zeros(changed.get(name, (2, 4, 37, 8))) for name in ("query", "key", "value")]
    options = dict(options)
    if "mask" in options:
        size, own = options.pop("mask"), options.pop("own", (None, None))
        mask = flex.create_block_mask(lambda b, h, q, k: q >= k, *own, 37, size, "cpu", BLOCK_SIZE=16)
        options["block_mask"] = mask[options.pop("index")] if "index" in options else mask
    with pytest.raises(error) as info:
        flex.flex_attention(*given, **options)
    assert str(info.value).startswith(words)


@needs_triton
@pytest.mark.thorough
def test_devices_that_do_not_fit():
    with tritensor.cuda.simulate():
        x, there = tritensor.zeros(1, 1, 4, 4), tritensor.zeros(1, 1, 4, 4, device="cuda")
        mask = flex.create_block_mask(flex.noop_mask, None, None, 4, 4)
        assert mask.kv_indices.is_cuda and mask.to("cpu").kv_indices.device.type == "cpu"
        with pytest.raises(RuntimeError, match="Expect q/k/v and block_mask to be on the same device"):
            flex.flex_attention(x, x, x, block_mask=mask)
        with pytest.raises(ValueError, match="Expected query, key, and value to have the same device type"):
            flex.flex_attention(x, there, there)


def test_bad_functions():
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        flex.and_masks(None)
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        flex.or_masks(flex.noop_mask, 1)
    with pytest.raises(AssertionError, match="Expected 4 or 5 positional args, got 1"):
        flex.create_mask(lambda x: x, 1, 1, 2, 2)
    with pytest.raises(AssertionError, match="create-block_mask requires a mask_mod function"):
        flex.create_block_mask(lambda score, b, h, q, k: score, 1, 1, 2, 2)
    counts = tritensor.ones(1, dtype=tritensor.int32)
    with pytest.raises(RuntimeError, match="BlockMask must have at least 2 dimensions"):
        flex.BlockMask.from_kv_blocks(counts, counts)
    with pytest.raises(AssertionError, match="full_kv_num_blocks and full_kv_indices must be both provided"):
        flex.BlockMask((1, 1), counts, counts[None], counts)
    sliced = flex.create_block_mask(flex.noop_mask, 1, 1, 4, 4, BLOCK_SIZE=2)[0]
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        flex.create_mask(sliced.mask_mod, 1, 1, 2, 2)


def test_scores_may_be_integers():
    q, k, v, _ = operands(tritensor)
    found = flex.flex_attention(q, k, v, lambda score, b, h, rows, keys: rows - keys)
    weights = (-tritensor.arange(KEYS).double()).softmax(0)
    tritensor.testing.assert_close(found, (weights @ v).unsqueeze(-2).expand_as(found))


def test_autocast_casts_the_operands_alone():
    q, k, v, _ = operands(tritensor, dtype=np.float32, requires_grad=True)
    score_mod = functions(tritensor, *tables(tritensor))["relative"][0]
    for each in (None, score_mod):
        with tritensor.autocast("cpu", dtype=tritensor.bfloat16):
            out = flex.flex_attention(q, k, v, each)
        wanted = flex.flex_attention(*[x.bfloat16() for x in (q, k, v)], each)
        assert out.dtype is tritensor.bfloat16 and out.equal(wanted)
        out.sum().backward()
    assert q.grad.dtype is tritensor.float32


def test_sizes_of_zero_and_halves():
    for shape in ((0, 4, 5, 8), (1, 0, 5, 8), (1, 4, 0, 8)):
        x = tritensor.zeros(shape)
        assert flex.flex_attention(x, x, x, lambda score, b, h, q, k: score).shape == shape
        mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, shape[2], shape[2], "cpu")
        assert flex.flex_attention(x, x, x, block_mask=mask).shape == shape
    q, k, v, _ = operands(tritensor, dtype=np.float16)
    score_mod = functions(tritensor, *tables(tritensor))["relative"][0]
    mask = flex.create_block_mask(lambda b, h, q, k: q >= b, 2, None, ROWS, KEYS, "cpu")
    for each in (k, v):  # one batch for all, and another dtype
        each[1] = each[0]
    out = flex.flex_attention(q, k[:1], v[:1].float(), score_mod, mask, scale=0.1)
    wanted = flex.flex_attention(q.float(), k.float(), v.float(), score_mod, mask, scale=0.1)
    assert out.dtype is tritensor.float16
    tritensor.testing.assert_close(out.float(), wanted, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def peer():
    pytest.importorskip("torch")
    module = pytest.importorskip("torch.nn.attention.flex_attention")
    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    yield module
    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False


@pytest.mark.peer
@pytest.mark.parametrize("few", [HEADS, 2])
@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_pytorchs(peer, name, few):
    """PyTorch's function has no gradients on the CPU; those of what it computes there are compared."""
    import torch
    from torch._higher_order_ops.flex_attention import math_attention

    results, drawn = [], []
    for package, module in ((torch, peer), (tritensor, flex)):
        q, k, v, weight = operands(package, few, requires_grad=True)
        learned = tables(package, requires_grad=True)
        score_mod, mask = functions(package, *learned)[name]
        own = block_mask(module, name, mask)
        if package is torch:
            plain = [x.detach() for x in (q, k, v)]
            found = module.flex_attention(*plain, score_mod, own, enable_gqa=True).detach()
            blocks = own or module._create_empty_block_mask(q, k)
            score_mod = score_mod or (lambda score, *indices: score)
            if "of a batch" in name:  # PyTorch has no gradient of the other form
                score_mod = lambda score, b, h, q, k, matrix=learned[2]: score + matrix[b, 0, q, k]  # noqa: E731
            out, logs, _ = math_attention(q, k, v, score_mod, blocks.as_tuple(), 1 / math.sqrt(8), {})
            logs = logs * math.log(2)
        else:
            out = found = flex.flex_attention(q, k, v, score_mod, own, enable_gqa=True)
            logs = flex.flex_attention(q, k, v, score_mod, own, enable_gqa=True, return_aux=flex.AuxRequest(True))[
                1
            ].lse
        shown = own and [own.to_dense().numpy(), own.to_string(), str(own), own.full_q_num_blocks.numpy()]
        grads = gradients(out, weight.detach(), q, k, v, *learned[:3])
        grads = [x if x is None or x.any() else None for x in grads]
        results.append([found.detach().numpy(), logs.detach().numpy(), *grads])
        if shown:
            drawn.append(shown)
    agree(*results)
    if drawn:
        assert drawn[0][1:3] == drawn[1][1:3]
        agree(drawn[0][::3], drawn[1][::3])
