"""What requires grad here is what does in PyTorch, for each of its operators and each argument alone.

A gradient that PyTorch refuses is refused here, at the call or in the backward pass, and not dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isclass
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's own tests import

import torch as reference

import tritensor
from tritensor.ground.public import FUNCTIONAL, PACKAGE, SPECIAL

from ..programs.drawing import words
from ..samples.operators import ENTRIES, function, is_there
from ..samples.sides import Side, Untranslated, ours, tensors, theirs

pytestmark = pytest.mark.peer

MOST = 8  # samples of an operator and dtype
KINDS = (reference.float64, reference.complex128)


def leaves(value: Any) -> list[Any]:
    return [each for each in tensors(value) if each.is_floating_point() or each.is_complex()]


def prepared(value: Any, wanted: int) -> Any:
    """PyTorch's value with the tensor at one place as a leaf that requires grad, and all others without."""
    count = iter(range(1000))

    def leaf(each: Any) -> Any:
        if not isinstance(each, reference.Tensor) or each.layout is not reference.strided:
            return each
        each = each.detach()
        return each.requires_grad_(next(count) == wanted) if each.is_floating_point() or each.is_complex() else each

    return Side(reference, leaf)(value)


def called(name: str, side: Side, args: list[Any], kwargs: dict[str, Any], wanted: int) -> Any:
    """For each floating result whether it requires grad, and whether its gradient is there; or the error."""
    reference.manual_seed(0)
    args, kwargs = prepared([args, kwargs], wanted)
    args, kwargs = side(args), side(kwargs)
    operator = function(name, side)
    try:
        found = leaves(operator(*args, **kwargs))
    except Exception as error:
        return type(error)
    (leaf,) = [each for each in tensors([args, kwargs]) if each.requires_grad] or [None]
    return [of_gradient(side, each, leaf) for each in found]


def of_gradient(side: Side, out: Any, leaf: Any) -> Any:
    """Whether a result has a gradient by a leaf: False if it does not require grad."""
    if not out.requires_grad or leaf is None or out is leaf:
        return out.requires_grad
    try:
        (grad,) = side.library.autograd.grad(
            out, leaf, side.library.ones_like(out), retain_graph=True, allow_unused=True
        )
    except RuntimeError as error:
        told = str(error)
        assert side.library is reference or ("aten::" not in told and "github.com" not in told)
        return "refused"
    return "None" if grad is None else "a gradient"


def cases(name: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    info = ENTRIES[name]
    for kind in KINDS:
        if kind in info.supported_dtypes("cpu"):
            every = list(info.sample_inputs("cpu", kind, requires_grad=False))
            for sample in every[:: max(1, -(-len(every) // MOST))]:
                yield [sample.input, *sample.args], dict(sample.kwargs)


def dropped(name: str) -> list[tuple[Any, Any]]:
    """What is found here and what PyTorch has, where a gradient that PyTorch has or refuses is dropped here."""
    found = []
    for args, kwargs in cases(name):
        for wanted in range(len(leaves([args, kwargs]))):
            theirs_seen = called(name, theirs(), args, kwargs, wanted)
            try:
                ours_seen = called(name, ours(), args, kwargs, wanted)
            except Untranslated:
                continue
            if isinstance(theirs_seen, type) or isinstance(ours_seen, type):
                if not isinstance(ours_seen, type) and ours_seen and not {*ours_seen} - {False, "None"}:
                    found.append((ours_seen, theirs_seen))
                continue
            for one, other in zip(ours_seen, theirs_seen, strict=True):
                if one in (False, "None") and other in ("a gradient", "refused"):
                    found.append((one, other))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ENTRIES if is_there(name)])
def test_no_function_drops_a_gradient(name: str) -> None:
    assert not dropped(name)


# ---- what is not among PyTorch's samples: x is a square matrix that requires grad ---------------------------------

MORE = words("""
    torch.binomial(x*0+3,x*0.1) torch.binomial(x.detach()*0+3,x*0.1) torch.poisson(x) torch.bernoulli(x*0.1)
    torch.normal(x,1.0) torch.normal(0.0,x) torch.normal(x,x) torch.normal(x.detach(),x) torch.randn_like(x)
    torch.bincount(torch.tensor([0,1,1]),x[0]) torch.histc(x) torch.histogram(x,3)
    torch.histogram(x.detach(),x[0].sort()[0]) torch.histogram(x.detach(),3,weight=x) torch.histogramdd(x,[2,2,2])
    torch.unique(x) torch.unique(x,dim=1) torch.unique_consecutive(x) torch.unique_consecutive(x,dim=0)
    torch.unique(x,return_inverse=True,return_counts=True) torch.heaviside(x,x) torch.heaviside(x.detach(),x)
    torch.heaviside(x,x.detach()) torch.geqrf(x) torch.linalg.ldl_factor(x) torch.linalg.ldl_factor_ex(x)
    torch.linalg.ldl_solve(x,torch.tensor([1,2,3],dtype=torch.int32),x)
    torch.linalg.ldl_solve(x.detach(),torch.tensor([1,2,3],dtype=torch.int32),x) torch.special.zeta(x,2.0)
    torch.special.gammainc(x,x) torch.special.chebyshev_polynomial_t(x,2)
    torch.special.chebyshev_polynomial_t(2.0,x) torch.special.hermite_polynomial_h(x,x)
    torch.special.modified_bessel_i0(x) torch.special.modified_bessel_i1(x)
    torch.nn.functional.fold(x.reshape(1,1,9),(3,3),1) torch.nn.functional.lp_pool2d(x[None],2.0,2)
    torch.nn.functional.gumbel_softmax(x) torch.nn.functional.gumbel_softmax(x,hard=True) torch.norm_except_dim(x)
    torch.nuclear_norm(x) torch.frobenius_norm(x,[0,1]) torch.chain_matmul(x,x) torch.conv_tbc(x[None],x[None],x[0])
    torch.nn.functional.dropout1d(x) torch.native_dropout(x,0.5,True) torch.feature_dropout(x,0.5,True)
    torch.segment_reduce(x,"sum",lengths=torch.tensor([1,2])) torch.nn.functional.max_pool2d_with_indices(x[None],2)
    torch.slice_copy(x) torch.select_copy(x,0,0) torch.split_copy(x,1) torch.detach(x) torch.detach_copy(x)
    torch.unsafe_split_with_sizes(x,[1,2]) torch.native_channel_shuffle(x.reshape(1,9,1,1),3) x.histc(3)
    x.new_ones(2) torch.nn.functional.affine_grid(x[None,:2],(1,1,2,2)) torch.rnn_tanh_cell(x,x,x,x)
    torch.gru_cell(x,x,x.repeat(3,1),x.repeat(3,1))
    torch.nn.functional.cross_entropy(x.detach(),torch.tensor([0,1,2]),x[0])
    torch.linalg.pinv(x.detach(),rtol=x[0,0]*0.1)
    torch.nn.functional.nll_loss(x.detach(),torch.tensor([0,1,2]),x[0])
    torch.linalg.pinv(x.detach(),atol=x[0,0]*0.1)
    torch.nn.functional.fractional_max_pool2d(x.detach()[None,None],2,2,_random_samples=x[:1,:2][None]*0.01)
    torch.addmm(x,x.detach(),x.detach(),beta=0) torch.baddbmm(x[None],x.detach()[None],x.detach()[None],beta=0)
    torch.addmv(x[0],x.detach(),x.detach()[0],beta=0) torch.addbmm(x,x.detach()[None],x.detach()[None],beta=0)
    torch.linalg.matrix_rank(x) torch.frexp(x) torch.nextafter(x,x) torch.sgn(x) torch.floor(x) torch.isin(x,x)
    torch.dsmm(x.detach(),x) torch.spmm(x,x.detach()) torch.sparse_coo_tensor(torch.tensor([[0,1,2]]),x[0]).to_dense()
    torch.nn.functional.scaled_mm(x[0,0].repeat(16,16).to(f.dtype),f.t(),one,s,one,s)
    torch.nn.functional.scaled_mm(f,f.t(),x[0,0].float(),s,one,s)
    """)
INTO = words("""
    torch.heaviside(x,x,out=o) torch.heaviside(x,x.detach(),out=o) torch.histogram(x,3,out=(o,o2))
    torch.geqrf(x,out=(o,o2)) torch.linalg.ldl_factor(x,out=(o,i))
    torch.linalg.ldl_solve(x,torch.tensor([1,2,3],dtype=torch.int32),x,out=o) torch.special.bessel_j0(x,out=o)
    torch.sign(x,out=o) torch.special.chebyshev_polynomial_t(x,2,out=o) torch.histc(x,3,out=o)
    torch.bernoulli(x*0.1,out=o) torch.normal(x,1.0,out=o) torch.nextafter(x,x,out=o)
    """)
MADE = ("x = torch.tensor([[4.0, 1, 2], [1, 5, 3], [2, 3, 7]], dtype=torch.float64, requires_grad=True)",)


def seen(side: Side, expression: str, *more: str) -> Any:
    """As `called`, of an expression in which `x` requires grad."""
    scope: dict[str, Any] = {"torch": side.library}
    reference.manual_seed(0)
    for statement in (*MADE, *more):
        exec(statement, scope)
    try:
        found = leaves(eval(expression, scope))
    except Exception as error:
        return next(kind for kind in (NotImplementedError, RuntimeError, Exception) if isinstance(error, kind))
    return [of_gradient(side, each, scope["x"]) for each in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [*MORE, *INTO])
def test_what_requires_grad_is_what_does_in_pytorch(expression: str) -> None:
    made = ["o, o2 = (torch.empty(0, dtype=torch.float64) for _ in range(2))", "i = torch.empty(0, dtype=torch.int32)"]
    made += ["f = torch.ones(16, 16).to(torch.float8_e4m3fn)", "one = torch.tensor(1.0)"]
    made += ["s = torch.nn.functional.ScalingType.TensorWise"]
    found, wanted = seen(ours(), expression, *made), seen(theirs(), expression, *made)
    if expression.startswith("torch.native_channel_shuffle"):
        assert wanted == ["refused"]  # which has one here
        wanted = ["a gradient"]
    assert found == wanted


METHODS = sorted(
    name
    for name in dir(reference.Tensor)
    if name.endswith("_") and not name.startswith("_") and hasattr(ours().library.Tensor, name)
)
FORMS = words("""
    () (y) (2) (0,1) (y,y) (0,i,y) (0,i,2.0) (0,i,y,'mean') (m,y) (m,2.0) (3,3) ((3,3)) ((i,),y[0]) (i,y[0]) (1)
    (0,k,y) (0,k,2.0) (0,k,y,'sum') (2,0,1.0) (y[None],y[None]) (0.5)
    """)
OTHER = {*words("requires_grad_ detach_ share_memory_ apply_ map_ map2_ set_ resize_ resize_as_ as_strided_")}
OTHER |= {*words("addmv_ baddbmm_")}  # of other shapes; they are among the samples
WHOLE = {"gcd_", "lcm_", *(name for name in METHODS if name.startswith("bitwise_"))}  # of integers alone


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in METHODS if name not in OTHER])
def test_no_method_in_place_drops_a_gradient(name: str) -> None:
    made = ["y = x.detach() + 1", "i = torch.tensor([0, 2, 1])", "m = x.detach() > 2", "k = i[:, None]"]
    tried = 0
    for form in FORMS:
        for expression in (f"(x * 0.1).{name}{form}", f"(x.detach() * 0.1).{name}{form.replace('y', '(x * 0.1)')}"):
            if "x" not in expression or (expression.startswith("(x.det") and "y" not in form):
                continue
            wanted = seen(theirs(), expression, *made)
            if isinstance(wanted, list):
                tried += 1
                found = seen(ours(), expression, *made)
                pairs = zip(found, wanted, strict=True) if isinstance(found, list) else ()
                assert not any(one in (False, "None") and other in ("a gradient", "refused") for one, other in pairs)
    assert tried or name in WHOLE


# Public functions that are neither among PyTorch's samples nor called above, with the reason.
ELSEWHERE = {
    name: reason
    for reason, names in {
        "makes tensors of what is none": """
            as_tensor asarray bartlett_window blackman_window fftfreq from_dlpack from_numpy frombuffer hamming_window
            hann_window kaiser_window rand randperm range rfftfreq tensor to_dlpack""",
        "a setting, or tells of a tensor": """
            are_deterministic_algorithms_enabled autocast_decrement_nesting autocast_increment_nesting can_cast
            clear_autocast_cache fork_rng get_autocast_dtype get_default_device get_default_dtype
            get_deterministic_debug_mode get_device get_device_module get_float32_matmul_precision get_num_threads
            get_rng_state initial_seed is_autocast_cache_enabled is_autocast_enabled is_complex is_conj
            is_deterministic_algorithms_warn_only_enabled is_distributed is_floating_point is_grad_enabled is_inference
            is_inference_mode_enabled is_neg is_nonzero is_same_size is_signed is_tensor manual_seed numel promote_types
            result_type seed set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled set_default_device
            set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
            set_num_threads set_printoptions set_rng_state symeig typename use_deterministic_algorithms""",
        "another form of one that is called": """
            adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
            affine_grid_generator convolution fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
            grid_sampler gru lp_pool1d lp_pool3d lstm lstm_cell max_pool1d_with_indices max_pool3d_with_indices
            rnn_relu rnn_relu_cell rnn_tanh upsample view_as_complex_copy view_as_real_copy""",
    }.items()
    for name in words(names)
}


def test_every_public_function_is_called() -> None:
    modules = (tritensor.linalg, tritensor.fft)
    public = [PACKAGE, FUNCTIONAL, SPECIAL, *({name: getattr(each, name) for name in each.__all__} for each in modules)]
    names = {name for table in public for name, value in table.items() if callable(value) and not isclass(value)}
    sampled = {each.name for each in ENTRIES.values()} | {a.name for each in ENTRIES.values() for a in each.aliases}
    sampled = {name.rpartition(".")[2] for name in sampled}
    called = {each.partition("(")[0].rpartition(".")[2] for each in (*MORE, *INTO)}
    others = {name for name in names if not name.endswith("_")} - sampled - called
    assert others == {*ELSEWHERE}
