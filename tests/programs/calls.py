"""Calls of public functions and methods, drawn from their signatures: a new operator joins by its declaration alone.

What an argument may be is known by its parameter's name (`arguments`). `UNCALLED` has the names that are not called
from here, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import torch as reference

import tritensor
from tritensor import nn
from tritensor.ground.public import PACKAGE

from .arguments import ARGUMENTS, INEXACT, JUMPS, base, operand
from .drawing import Draw, words

__all__ = [
    "INEXACT",
    "JUMPS",
    "base",
    "call",
    "callables",
    "is_elementwise",
    "is_of_shapes",
    "named",
    "operand",
    "where",
]

UNCALLED: dict[str, str] = {
    name: reason
    for reason, names in {
        "its elements are not those of PyTorch's generator": """
            alpha_dropout alpha_dropout_ bernoulli dropout dropout_ feature_alpha_dropout feature_alpha_dropout_
            feature_dropout feature_dropout_ native_dropout multinomial normal rand rand_like randint randint_like randn
            randn_like randperm bernoulli_ exponential_ normal_ random_ uniform_
            binomial cauchy_ geometric_ log_normal_ poisson gumbel_softmax rrelu rrelu_""",
        "made by the family of creation": """
            empty empty_like new_empty arange as_tensor asarray eye full full_like linspace logspace ones ones_like
            scalar_tensor tensor zeros zeros_like new_full new_ones new_tensor new_zeros from_numpy from_dlpack range
            empty_permuted empty_strided new_empty_strided frombuffer to_dlpack tril_indices triu_indices""",
        "gets a function of Python": "apply_ map_ map2_",
        "tells where in memory elements are, which for results is not the same": """
            as_strided as_strided_ as_strided_copy as_strided_scatter""",
        "a setting of the process": """
            fork_rng get_default_device get_default_dtype get_float32_matmul_precision get_num_threads get_rng_state
            initial_seed is_grad_enabled is_inference_mode_enabled manual_seed seed set_default_device set_default_dtype
            set_float32_matmul_precision set_num_threads set_printoptions set_rng_state autocast_decrement_nesting
            autocast_increment_nesting clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled
            is_autocast_enabled set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled
            set_default_tensor_type are_deterministic_algorithms_enabled get_deterministic_debug_mode
            is_deterministic_algorithms_warn_only_enabled use_deterministic_algorithms""",
        "is of sparse tensors; tests/functional/sparse compares it": """
            sparse_coo_tensor to_dense to_sparse to_sparse_coo""",
        "is of classes; tests/functional/test_overrides.py and tests/scripts/test_faces.py test it": "as_subclass new",
        "has its own way of drawing arguments": """
            backward requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook detach_ to type view
            expand expand_copy view_copy view_as_real_copy view_as_complex_copy unfold size stride einsum index_put
            index_put_ index_reduce index_reduce_ scatter_reduce scatter_reduce_ segment_reduce nonzero_static put
            put_ masked_scatter masked_scatter_ where
            embedding embedding_bag promote_types can_cast get_printoptions""",
        "has more tensors than one of its shape; tests/functional and tests/nn compare it": """
            multi_head_attention_forward
            scaled_dot_product_attention binary_cross_entropy_with_logits batch_norm group_norm instance_norm conv1d
            conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution layer_norm native_batch_norm
            native_group_norm affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d bilinear""",
        "a loss of several tensors; tests/samples compares it": """
            cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss
            triplet_margin_loss""",
        "has arguments of its own; tests/samples compares it": """
            bincount bucketize cov histc histogram histogramdd isin nanquantile quantile searchsorted unique
            unique_consecutive""",
        "of equal elements PyTorch finds any; tests/samples compares it": """
            kthvalue median mode nanmedian""",
        "has layers of weights; tests/nn/test_recurrent_layers.py compares it": """
            lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell""",
        "factorises matrices, of which signs and phases are nobody's choice; tests/samples compares it": """
            cholesky qr svd lu lu_solve lu_unpack geqrf orgqr ormqr svd_lowrank pca_lowrank symeig eig""",
        "is of matrices, and drawn ones are seldom regular; tests/samples compares it": """
            chain_matmul cholesky_inverse cholesky_solve det inverse logdet lstsq matrix_exp matrix_power matrix_rank
            pinverse slogdet solve triangular_solve""",
        "another spelling; tests/functional/window compares it": """
            adaptive_max_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d norm_except_dim""",
        "has factors, parts or dimensions of its own; tests/samples compares it": """
            addbmm addbmm_ addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ cdist complex float_power float_power_ polar
            renorm renorm_ tensordot chain_matmul""",
        "is of signals; tests/functional/test_spectral.py and tests/samples compare it": """
            stft istft bartlett_window blackman_window hamming_window hann_window kaiser_window""",
        "tells of a device or of memory": """
            cuda cpu pin_memory record_stream data_ptr get_device is_pinned numpy share_memory_ is_shared
            untyped_storage storage""",
        "what it exposes or swaps is defined by nobody": """
            resize_ resize_as_ set_""",
    }.items()
    for name in words(names)
}


@cache
def parameters(name: str, owner: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of our function or method, the tensor itself included; `owner` is what it is called through."""
    places = {"torch": tritensor, "torch.nn.functional": nn.functional, "Tensor": tritensor.Tensor}
    found = [p for p in inspect.signature(getattr(places[owner], name)).parameters.values() if p.name != "older"]
    for several, named_too in pairwise(found):
        if several.kind is several.VAR_POSITIONAL and named_too.name in ("dims", "repeats", "shape", "size", "sizes"):
            found.remove(named_too)  # `permute(*order, dims=None)`: the same argument in two forms
            found[found.index(several)] = several.replace(name=named_too.name)
            break
    return tuple(found)


def _has(owner: str, name: str) -> bool:
    places = {"torch": reference, "torch.nn.functional": reference.nn.functional, "Tensor": reference.Tensor}
    return hasattr(places[owner], name)


@cache
def callables() -> dict[str, tuple[tuple[str, str], ...]]:
    """Every public function and method that both libraries have, with what it is called through: (owner, name)s.

    The in-place methods stand under their own names.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name, value in PACKAGE.items():
        if callable(value) and not inspect.isclass(value) and _has("torch", name):
            found.setdefault(name, []).append(("torch", name))
    for name in dir(nn.functional):
        value = getattr(nn.functional, name)
        if (
            not name.startswith("_")
            and callable(value)
            and not inspect.isclass(value)
            and _has("torch.nn.functional", name)
        ):
            found.setdefault(name, []).append(("torch.nn.functional", name))
    for name in dir(tritensor.Tensor):
        value = inspect.getattr_static(tritensor.Tensor, name)
        if not name.startswith("_") and callable(value) and _has("Tensor", name):
            found.setdefault(name, []).append(("Tensor", name))
    return {name: tuple(ways) for name, ways in found.items() if name not in UNCALLED and _known(ways)}


def _known(ways: list[tuple[str, str]]) -> bool:
    every = [parameters(name, owner) for owner, name in ways[:1]]
    return all(
        found and all(each.name in ARGUMENTS or each.kind is each.VAR_KEYWORD for each in found[1:]) for found in every
    )


@cache
def uncallable() -> tuple[str, ...]:
    """Functions and methods of both libraries that nothing here can call and that `UNCALLED` does not name."""
    functions = {name: value for name, value in PACKAGE.items() if hasattr(reference, name)}
    methods = {name: inspect.getattr_static(tritensor.Tensor, name) for name in dir(tritensor.Tensor)}
    methods = {name: value for name, value in methods.items() if hasattr(reference.Tensor, name)}
    return tuple(
        sorted(
            name
            for name, value in {**methods, **functions}.items()
            if inspect.isroutine(value) and not name.startswith("_")
            if name not in UNCALLED and name not in callables()
        )
    )


@cache
def named(test: Callable[[set[str]], bool], in_place: bool) -> tuple[str, ...]:
    """The names of which the parameters after the first satisfy a test."""
    chosen = []
    for name, ways in callables().items():
        owner, called = ways[0]
        names = {p.name for p in parameters(called, owner)[1:] if p.kind is not p.VAR_KEYWORD}
        if name.endswith("_") == in_place and test(names):
            chosen.append(name)
    return tuple(sorted(chosen))


ELEMENTWISE = frozenset(
    words("""
    other alpha value min max tensor1 tensor2 end weight rounding_mode decimals nan posinf neginf rtol atol equal_nan
    negative_slope beta threshold approximate min_val max_val inplace mask condition memory_format
    """)
)


def is_elementwise(names: set[str]) -> bool:
    """Whether a function with these parameters works on each element."""
    return names <= ELEMENTWISE


def is_of_shapes(names: set[str]) -> bool:
    """Whether a function with these parameters reduces, rearranges or joins."""
    return not is_elementwise(names)


# How often an optional argument is passed, where that is not usual: without one there is no such call.
SHARES = {
    ("scatter", "value"): 0.02,
    ("scatter", "src"): 1.0,
    ("repeat_interleave", "repeats"): 0.97,
    ("repeat_interleave", "dim"): 0.7,
    ("topk", "sorted"): 0.0,
    ("sort", "stable"): 0.1,
    ("argsort", "stable"): 0.1,
    ("mse_loss", "weight"): 0.1,
    ("l1_loss", "weight"): 0.1,
    ("max", "other"): 0.03,
    ("min", "other"): 0.03,
}


def call(draw: Draw, name: str, x: str) -> str:
    """The text of a call of `name` on the tensor `x`."""
    if name == "where":
        return where(draw, x)
    if base(name) in ("index_add", "index_copy"):
        return at_places(draw, name, x)
    if name == "topk" and len(set(draw.value(x).flatten().tolist())) < draw.value(x).numel():
        name = "sort"  # which of equal elements topk finds is nobody's promise
    owner, called = draw.one(callables()[name])
    value = draw.value(x)
    every = [p for p in parameters(called, owner) if p.kind is not p.VAR_KEYWORD]
    first, rest = every[0], every[1:]
    positional, keyword, skipped = [], [], False
    if first.name == "tensors":
        head = ARGUMENTS["tensors"](draw, value, name) or "[]"
        if first.kind is first.VAR_POSITIONAL:
            head = head[1:-1] if draw.chance(0.7) else head
        positional.append(head)
    elif owner != "Tensor":
        positional.append(x)
    for parameter in rest:
        optional = parameter.default is not parameter.empty
        wanted = SHARES.get((base(name), parameter.name), 0.85 if parameter.name in ("dim", "min", "dims") else 0.3)
        text = None if optional and not draw.chance(wanted) else ARGUMENTS[parameter.name](draw, value, name)
        if text is None:
            skipped = True
            continue
        if text.startswith("*"):
            text = text[1:] if parameter.kind is parameter.VAR_POSITIONAL and not skipped else f"({text[1:]},)"
        by_name = parameter.kind is parameter.KEYWORD_ONLY or skipped or (optional and draw.chance(0.25))
        if by_name and parameter.kind is not parameter.VAR_POSITIONAL:
            keyword.append(f"{parameter.name}={text}")
            skipped = True
        else:
            positional.append(text)
    head = f"{x}.{called}" if owner == "Tensor" else f"{owner}.{called}"
    return f"{head}({', '.join([*positional, *keyword])})"


def where(draw: Draw, x: str) -> str:
    """The text of a call of `where`, of which the condition comes first."""
    value = draw.value(x)
    condition = draw.tensor(draw.fitting(value.shape), "bool")
    other = operand(draw, value, "where")
    return draw.one(
        (
            f"torch.where({condition}, {x}, {other})",
            f"{x}.where({condition}, {other})",
            f"torch.where({condition}, {other}, {x})",
            f"torch.where({x})",
            f"torch.where({condition})",
        )
    )


def at_places(draw: Draw, name: str, x: str) -> str:
    """The text of a call of `index_add` or `index_copy`, of which the index and the source fit together."""
    value = draw.value(x)
    dim = int(draw.dim(value.dim(), 0.03))
    index = ARGUMENTS["index"](draw, value, name) or "[]"
    shape = list(value.shape)
    if -len(shape) <= dim < len(shape) and draw.chance(0.95):
        shape[dim] = index.count(",") + 1 - index.count("dtype") if "zeros" not in index else 0
    dtype = str(value.dtype).rpartition(".")[2] if draw.chance(0.95) else draw.dtype()
    alpha = f", alpha={draw.number()}" if base(name) == "index_add" and draw.chance(0.3) else ""
    way = f"torch.{name}({x}, " if not name.endswith("_") and draw.chance(0.5) else f"{x}.{name}("
    return f"{way}{dim}, {index}, {draw.tensor(shape, dtype)}{alpha})"
