"""Chains of linear algebra, Fourier transforms and special functions, at edges too, and gradients through them.

Factors are not unique: of a decomposition only what does not depend on signs, phases and order is kept.
"""

from __future__ import annotations

import re
from typing import Any

import torch as reference

from .drawing import Draw, words

DTYPES = {"float64": 50, "complex128": 32, "float32": 11, "complex64": 7}
EDGES = words("""
    0.0 -0.0 inf -inf nan 1.0 -1.0 -2.0 -3.0 0.5 -0.5 1.5 -1.5 2.0 3.0 7.0 20.0 33.3 100.0 171.0 172.5 -20.5 -100.0
    500.0 -500.0 1e-8 -1e-8 1e-30 1e10 -1e10 1e15 1e300 0.9999999 -0.9999999 1.0000001 0.25 0.75 -0.25 4.0 6.25
    """)
UNARY = words("""
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e
    i1 i1e log1p log_ndtr logit modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri
    psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc spherical_bessel_j0
    """)
BINARY = words("xlogy xlog1py zeta gammainc gammaincc")
POLYNOMIALS = words("""
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
    hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
    """)
NORMS = words("'backward' 'forward' 'ortho' None 'wrong'")
# of a square matrix A and its dtype's name D
OF_SQUARES = (
    *words("torch.linalg.inv(A) torch.linalg.inv_ex(A)[0] torch.inverse(A) torch.linalg.det(A) torch.det(A)"),
    *words("torch.linalg.slogdet(A) torch.slogdet(A)[1] torch.logdet(A) torch.trace(A) torch.matrix_exp(A*0.25)"),
    *words("torch.linalg.matrix_exp(A*0.1) torch.linalg.eigvals(A).abs().sort(-1)[0] torch.linalg.eigvals(A).sum(-1)"),
    "torch.linalg.eigvals(A).square().sum(-1)",
    "(lambda L, V: V @ (L.unsqueeze(-1) * torch.linalg.inv(V)))(*torch.linalg.eig(A))",
    *words("torch.linalg.lu_factor(A+9*A.mH@A) torch.linalg.ldl_factor(A).pivots"),
    "torch.linalg.solve(A, A.mH)",
    "torch.linalg.matrix_power(A, {power})",
    "torch.matrix_power(A, {power})",
    "torch.linalg.cond(A, {ord})",
    "torch.linalg.tensorinv(A, ind=1)",
    "torch.triangular_solve(A.mT, A, {flag}, {flag}, {flag})[0]",
    "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(A + A.mT), A)",
    "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(A + A.mH, hermitian=True), A, hermitian=True)",
    "torch.lu_solve(A, *torch.linalg.lu_factor(A))",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(A), A, left={flag}, adjoint={flag})",
)
# of Hermitian and positive matrices, made of A
OF_HERMITIAN = (
    "torch.linalg.eigvalsh(H, UPLO={uplo})",
    "torch.linalg.eigh(H, {uplo})[0]",
    "(lambda w, V: (V * w.cos().unsqueeze(-2)) @ V.mH)(*torch.linalg.eigh(H, UPLO={uplo}))",
    "torch.linalg.cholesky(H, upper={flag})",
    "torch.linalg.cholesky_ex(H, upper={flag})",
    "torch.cholesky(H, {flag})",
    "torch.cholesky_inverse(torch.linalg.cholesky(H, upper={flag}))",
    "torch.cholesky_inverse(torch.linalg.cholesky(H, upper=True), True)",
    "torch.cholesky_solve(A, torch.linalg.cholesky(H, upper={flag}), upper={flag})",
    "torch.linalg.pinv(H, hermitian=True)",
    "torch.linalg.matrix_rank(H, hermitian=True)",
    "torch.linalg.cond(H)",
    "torch.logdet(H)",
    "torch.linalg.solve(H, A, left={flag})",
)
# of any matrices
OF_MATRICES = (
    "torch.linalg.svdvals(M)",
    "(lambda U, S, Vh: (U * S.unsqueeze(-2)) @ Vh)(*torch.linalg.svd(M, full_matrices=False))",
    "torch.linalg.svd(M, full_matrices={flag})[1]",
    "(lambda U, S, V: (U * S.sin().unsqueeze(-2)) @ V.mH)(*torch.svd(M))",
    "(lambda Q, R: Q @ R)(*torch.linalg.qr(M, mode={mode}))",
    "torch.linalg.qr(M, mode={mode})[1].abs().square()",
    "(lambda Q, R: Q @ R)(*torch.qr(M, {flag}))",
    "(lambda P, L, U: P @ L @ U)(*torch.linalg.lu(M))",
    "torch.linalg.lu(M)[2].abs().square()",
    "(lambda P, L, U: P @ (L @ U))(*torch.lu_unpack(*torch.linalg.lu_factor_ex(M)[:2]))",
    "(lambda a, tau: torch.linalg.householder_product(a, tau) @ a[..., : a.shape[-1], :].triu())(*torch.geqrf(M))",
    "(lambda a, tau: torch.ormqr(a, tau, a.triu()))(*torch.geqrf(M))",
    "torch.linalg.pinv(M)",
    "torch.linalg.pinv(M, rtol={number})",
    "torch.linalg.pinv(M, atol={number}, rtol={number})",
    "torch.pinverse(M, {number})",
    "torch.linalg.matrix_rank(M)",
    "torch.linalg.matrix_rank(M, tol={number})",
    "torch.linalg.matrix_rank(M, atol={number}, rtol={number})",
    "torch.linalg.lstsq(M, {right}, driver={driver})[0]",
    "torch.linalg.lstsq(M, {right}, rcond={tiny}, driver={driver})",
    "torch.linalg.matrix_norm(M, {ord}, dim={dims}, keepdim={flag})",
    "torch.linalg.norm(M, {ord}, keepdim={flag})",
    "torch.linalg.norm(M, {ord}, dim={dims})",
    "torch.linalg.norm(M, {p}, dim={dim})",
    "torch.linalg.vector_norm(M, {p}, dim={dim}, keepdim={flag})",
    "torch.linalg.vector_norm(M, {p}, dim={dims})",
    "torch.linalg.diagonal(M, offset={small}, dim1={dim}, dim2={dim})",
    "torch.linalg.vander(M, N={power})",
    "torch.linalg.vecdot(M, {same}, dim={dim})",
    "torch.linalg.cross(M, {same}, dim={dim})",
    "torch.linalg.matmul(M, M.mH)",
    "torch.linalg.multi_dot([M, M.mT, M])",
    "torch.linalg.solve_triangular(M, {right}, upper={flag}, left={flag}, unitriangular={flag})",
    "torch.linalg.solve_triangular(M @ M.mH + torch.eye(M.shape[-2]), M, upper={flag}, unitriangular={flag})",
    "torch.linalg.solve(M, {right}, left={flag})",
    "torch.linalg.tensorsolve(M, {same})",
    "torch.norm(M, {p}, {dim})",
    "torch.linalg.svd(M, {flag})[1].prod(-1)",
)
TRANSFORMS = (
    "torch.fft.{one}(M, n={length}, dim={dim}, norm={norm})",
    "torch.fft.{one}(M)",
    "torch.fft.{one}(M, {length}, {dim})",
    "torch.fft.{two}(M, s={lengths}, dim={dims}, norm={norm})",
    "torch.fft.{two}(M)",
    "torch.fft.{many}(M, s={lengths}, dim={dims}, norm={norm})",
    "torch.fft.{many}(M, dim={dim_or_dims})",
    "torch.fft.{many}(M, {lengths})",
    "torch.fft.{shift}(M, dim={dim_or_dims})",
    "torch.fft.{shift}(M)",
    "torch.fft.{freq}({count}, d={number}, dtype=torch.float64)",
)
ONE = words("fft ifft rfft irfft hfft ihfft")
HAVE_OUT = ("inv", "det", "matrix_power", "svdvals", "eigvalsh", "cholesky", "pinv", "solve", "matrix_norm")


def program(draw: Draw) -> None:
    """One or two operands, two to six calls, then a gradient."""
    gradient = draw.chance(0.55)
    kind = draw.weighted(matrices=70, special=30)
    for i in range(draw.integer(1, 2)):
        dtype = draw.weighted(**DTYPES)
        text = matrix(draw, dtype) if kind == "matrices" or draw.chance(0.2) else edges(draw)
        leaf = ".requires_grad_()" if gradient and draw.chance(0.85) else ""
        draw.say(f"x{i} = {text}{leaf}")
    for _ in range(draw.integer(2, 6)):
        if draw.chance(0.9 if kind == "special" else 0.1):
            special(draw)
        else:
            statement(draw)
    if gradient:
        ends = draw.names(lambda t: t.requires_grad and t.numel() and not t.is_leaf)
        terms = [
            f"{end}.abs().square().sum()"
            if draw.value(end).is_complex()
            else f"({end} * {end}).sum()"
            if draw.chance(0.5)
            else f"{end}.sum()"
            for end in ends[-2:]
        ]
        if terms:
            draw.say(f"({' + '.join(terms)}).backward()")


def matrix(draw: Draw, dtype: str) -> str:
    """Matrices: seldom of odd shapes, singular, empty; often regular."""
    batch = () if draw.chance(0.6) else draw.shape(3, draw.integer(1, 2))
    rows = 0 if draw.chance(0.04) else draw.integer(1, 4)
    cols = rows if draw.chance(0.6) else 0 if draw.chance(0.04) else draw.integer(1, 4)
    if draw.chance(0.05):
        return draw.tensor(draw.shape(4), dtype, 0.0)
    made = draw.tensor((*batch, rows, cols), dtype, 0.0)
    regular = draw.weighted(dominant=60, plain=30, ones=5, zeros=5)
    if regular == "dominant" and rows == cols:
        return f"({made} + {draw.integer(3, 9)} * torch.eye({rows}, dtype=torch.{dtype}))"
    if regular == "ones":
        return f"torch.ones({(*batch, rows, cols)}, dtype=torch.{dtype})"
    if regular == "zeros":
        return f"torch.zeros({(*batch, rows, cols)}, dtype=torch.{dtype})"
    return made


def edges(draw: Draw) -> str:
    """A vector of numbers where special functions have edges."""
    chosen = ", ".join(draw.one(EDGES) for _ in range(draw.integer(1, 6)))
    return f"torch.tensor([{chosen}], dtype=torch.{draw.one(('float64', 'float64', 'float64', 'float32'))})"


def special(draw: Draw) -> None:
    """A special function of a real tensor."""
    real = draw.names(lambda t: t.is_floating_point() and t.numel() <= 256)
    x = draw.one(real) if real else edges(draw)
    if x not in draw.session.theirs:
        draw.say(f"x9 = {x}")
        x = "x9"
    kind = draw.weighted(unary=60, binary=14, polynomial=14, order=6, over=6)
    name = draw.fresh()
    if kind == "unary":
        called = draw.one(UNARY)
        more = f", decimals={draw.integer(-2, 3)}" if called == "round" and draw.chance(0.5) else ""
        more = f", eps={draw.one(words('1e-6 0.1 0.7 None'))}" if called == "logit" and draw.chance(0.5) else more
        if draw.chance(0.12):
            out = f"torch.empty(0, dtype=torch.{dtype_of(draw, x)})"
            draw.say(f"{name} = torch.special.{called}({x}.detach(){more}, out={out})")
        else:
            draw.say(f"{name} = torch.special.{called}({x}{more})")
    elif kind == "binary":
        number = draw.one(words("2.0 0.5 0.0 1 -1.5 inf 3"))
        called = draw.one(BINARY)
        numbers = called == "zeta"  # the family of numbers has the others
        other = draw.one((x, edges(draw), f"{x}.detach() + 1", number if numbers else x))
        pair = f"{number}, {x}" if numbers and draw.chance(0.15) else f"{x}, {other}"
        draw.say(f"{name} = torch.special.{called}({pair})")
    elif kind == "polynomial":
        degree = draw.one(("0", "1", "2", "3", "7", "-1", "12", "torch.tensor([0, 1, 4])[:, None]"))
        draw.say(f"{name} = torch.special.{draw.one(POLYNOMIALS)}({x}, {degree})")
    elif kind == "order":
        order = draw.integer(0, 4)
        draw.say(
            f"{name} = "
            + draw.one((f"torch.special.polygamma({order}, {x})", f"torch.special.multigammaln({x}, {max(order, 1)})"))
        )
    else:
        dim = draw.dim(draw.value(x).dim())
        called = draw.one(("softmax", "log_softmax", "logsumexp"))
        draw.say(f"{name} = torch.special.{called}({x}, {dim})")


def dtype_of(draw: Draw, name: str) -> str:
    """The name of the dtype of a tensor."""
    value = draw.session.theirs.get(name.removesuffix(".detach()"))
    return "float32" if value is None else str(value.dtype).rpartition(".")[2]


def statement(draw: Draw) -> None:
    """A call of linear algebra or a Fourier transform."""
    kind = draw.weighted(squares=28, hermitian=16, matrices=34, transforms=22)
    every = draw.names(fits) or ["torch.ones(2, 2)"]
    matrices = [name for name in every[:9] if name in draw.session.theirs and draw.value(name).dim() > 1]
    square = [name for name in matrices if draw.value(name).shape[-1] == draw.value(name).shape[-2]]
    square = [name for name in square if is_regular(draw.value(name), name[0] == "x")]
    oblong = [name for name in matrices if len({1, *draw.value(name).shape[-2:]}) == 3]
    if kind in ("squares", "hermitian") and (square or (oblong and draw.chance(0.2))):
        x = draw.one(square or oblong)
        table: Any = OF_SQUARES if kind == "squares" else OF_HERMITIAN
    else:
        x = draw.one(every)
        table = TRANSFORMS if kind == "transforms" else OF_MATRICES
        if table is OF_MATRICES and x in matrices and is_deficient(draw.value(x)):
            x = f"{x}.detach()"  # its singular vectors, and gradients by them, are decided by rounding
    form = draw.one(table)
    if x.endswith(".detach()") and ".solve(" in form:  # nearly singular: nothing but rounding
        form = OF_MATRICES[0]
    text = filled(draw, form, x)
    called = text.partition("(")[0].rpartition(".")[2]
    if called in HAVE_OUT and text.startswith("torch.linalg") and draw.chance(0.15):
        out = f"torch.empty({draw.one(('0', '2'))}, dtype=torch.{dtype_of(draw, x)})"
        text = f"{text.replace(x, f'{x}.detach()')[:-1]}, out={out})"
    draw.say(f"{draw.fresh()} = {text}")


def fits(value: Any) -> bool:
    """Whether a tensor is one of linear algebra."""
    if not (value.is_floating_point() or value.is_complex()) or value.numel() > 256 or not value.dim():
        return False
    return bool(value.isfinite().all()) and (value.numel() == 0 or float(value.detach().abs().max()) < 1e5)


def is_regular(value: Any, drawn: bool) -> bool:
    """Whether square matrices are regular with distinct eigenvalues, or drawn ones that are exactly singular: what is
    computed of others is decided by their rounding."""
    exact = drawn and not value.is_complex() and not value.requires_grad and value.unique().numel() == 1
    if not value.numel() or exact:
        return True
    x = value.detach()
    values = reference.linalg.eigvals(x)
    apart = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs() + reference.eye(x.shape[-1])
    return bool((reference.linalg.cond(x) < 1e6).all() and (apart > 1e-2).all())


def is_deficient(value: Any) -> bool:
    """Whether matrices are of a deficient rank, or nearly."""
    S = reference.linalg.svdvals(value.detach())
    return bool(S.numel() and (S.amin(-1) < 1e-4 * S.amax(-1)).any())


def filled(draw: Draw, form: str, x: str) -> str:
    """A form with its parts drawn."""
    value = draw.session.theirs.get(x.removesuffix(".detach()"))
    shape = tuple(value.shape) if value is not None else (2, 2)
    dims, dtype = len(shape), dtype_of(draw, x)
    pair = draw.rng.sample(range(-dims, 0), 2) if dims > 1 else [0, -1]
    one = draw.one(ONE)
    positive = form.replace("H", f"(A @ A.mH + {draw.integer(1, 3)} * torch.eye(A.shape[-2], dtype=torch.{dtype}))")
    parts = {
        "{power}": lambda: str(draw.integer(-2, 4)),
        "{ord}": lambda: draw.one(words("'fro' 'nuc' inf -inf 1 -1 2 -2 None 3")),
        "{p}": lambda: draw.one(words("0 1 2 3 inf -inf 0.5 2.5 -1")),
        "{flag}": lambda: draw.one(("True", "False")),
        "{uplo}": lambda: draw.one(words("'L' 'U' 'l'")),
        "{mode}": lambda: draw.one(words("'reduced' 'complete' 'reduced' 'r'")),
        "{driver}": lambda: draw.one(words("None 'gels' 'gelsy' 'gelsd' 'gelss' 'other'")),
        "{number}": lambda: draw.one(words("1.7 0.37 0.013 1e-10")),
        "{tiny}": lambda: draw.one(words("1e-5 1e-4")),
        "{small}": lambda: str(draw.integer(-2, 2)),
        "{count}": lambda: str(draw.integer(1, 6)),
        "{dim}": lambda: draw.dim(dims, 0.03),
        "{dims}": lambda: f"({pair[0]}, {pair[1]})",
        "{dim_or_dims}": lambda: draw.one((f"({pair[0]}, {pair[1]})", f"({pair[0]},)", "None")),
        "{length}": lambda: draw.one(words("None 1 2 3 4 5 7 0")),
        "{lengths}": lambda: draw.one(("(2, 3)", "(4, 4)", "(1, 5)", "(-1, 2)", "None", "(3, 1)")),
        "{norm}": lambda: draw.one(NORMS[:-1]) if draw.chance(0.97) else NORMS[-1],
        "{one}": lambda: one,
        "{two}": lambda: f"{one}2",
        "{many}": lambda: f"{one}n",
        "{shift}": lambda: draw.one(("fftshift", "ifftshift")),
        "{freq}": lambda: draw.one(("fftfreq", "rfftfreq")),
        "{same}": lambda: draw.tensor(shape, dtype, 0.0),
        "{right}": lambda: draw.tensor((*shape[:-1], draw.integer(1, 3)), dtype, 0.0),
    }
    for name, drawn in parts.items():
        while name in positive:
            positive = positive.replace(name, drawn(), 1)
    for letter in "AM":
        positive = replaced(positive, letter, x)
    return positive


def replaced(text: str, letter: str, name: str) -> str:
    """A text in which a name stands for a letter that stands alone."""
    return re.sub(rf"\b{letter}\b", name, text)
