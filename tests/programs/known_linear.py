"""Results of linear algebra, Fourier transforms and special functions that differ and are meant to."""

from __future__ import annotations

from .kinds import VALUE, Known

LINEAR: tuple[Known, ...] = (
    Known(
        "The exponentially scaled Bessel function of nan",
        VALUE,
        r"(?s)^grad's value of.*nan",
        "The derivative at nan is nan; PyTorch's is a half, as at 0.",
        "torch.special.i1e(torch.tensor(nan, requires_grad=True)).backward()",
        program=r"special\.i1e\(",
    ),
    Known(
        "Polygamma functions",
        VALUE,
        r"^(grad's )?value of",
        "They have errors of 1e-15 here and poles at the negative integers; PyTorch's have errors of 1e-11 and are "
        "finite there.",
        "torch.special.polygamma(1, torch.tensor([-3.0]))",
        program=r"polygamma_?\(|\bdigamma_?\(",
    ),
    Known(
        "Zeta functions of huge orders",
        VALUE,
        r"(?s)^(grad's )?value of.*torch: .*(nan|inf)",
        "They are their limits for positive arguments; PyTorch's are nan there, of 0 times infinity.",
        "torch.special.zeta(torch.tensor(1e300), 1e300)",
        program=r"special\.zeta\(",
    ),
    Known(
        "Orthogonal polynomials of nan, and huge ones",
        VALUE,
        r"(?s)^(grad's )?value of.*(nan|inf)",
        "nan stays nan, and what overflows is infinite: they are computed in float64. PyTorch gives 0 or the element "
        "before for some nans, and computes in float32, where infinity less infinity is nan.",
        "torch.special.legendre_polynomial_p(torch.tensor([1e10]), 12)",
        program=r"special\.\w*polynomial_\w+\(",
    ),
    Known(
        "The inverse of a singular matrix",
        VALUE,
        r"(?s)^(grad's )?value of.*nan",
        "If nothing is raised, all of it is nan; PyTorch returns what the elimination left.",
        "torch.linalg.inv_ex(torch.zeros(2, 2))[0]",
        program=r"((inv|solve)_ex|logdet)\(",
    ),
    Known(
        "Ranks by tolerances below the rounding",
        VALUE,
        r"^value (\[\d+\] )*of",
        "Singular values that rounding leaves of a smaller rank count where the tolerance is smaller still, in either "
        "library.",
        "torch.linalg.matrix_rank(torch.randn(3, 1).expand(3, 2), tol=1e-10)",
        program=r"matrix_rank\(.*tol=1e-10",
    ),
    Known(
        "Least squares of a deficient rank by gels",
        VALUE,
        r"^(grad's )?value (\[\d+\] )*of",
        "The driver takes all matrices for ones of full rank: of others PyTorch's solution is rounding noise, "
        "here it is the smallest one.",
        "torch.linalg.lstsq(torch.ones(3, 4), torch.ones(3, 1), driver='gels').solution",
        program=r"driver='gels'\)",
    ),
    Known(
        "The strides of Fourier transforms and condition numbers",
        VALUE,
        r"^strides of",
        "They are in no promised order; PyTorch's have the transformed dimensions as the library left them.",
        "torch.fft.ihfft(torch.ones(3, 4), dim=0).stride()",
        r"fft\.|cond\(",
    ),
    Known(
        "Least squares of one row by gelsy",
        VALUE,
        r"^(grad's )?value (\[\d+\] )*of",
        "PyTorch does not set which columns LAPACK may exchange: some runs take a matrix of rank 1 for one of rank 0.",
        "torch.linalg.lstsq(torch.tensor([[0.75, 0.0]]), torch.tensor([[2.0]])).solution",
        program=r"lstsq\((?!.*driver='(gels|gelsd|gelss)')",
    ),
    Known(
        "Gamma functions near their poles",
        VALUE,
        r"^(grad's )?value of",
        "The last bit of an argument next to a negative integer decides; in float32 PyTorch rounds the argument first.",
        "torch.special.multigammaln(torch.tensor([-1e-8]), 4)",
        program=r"special\.(psi|digamma|gammaln|multigammaln)\(",
    ),
    Known(
        "The logit of what is nearly 1",
        VALUE,
        r"(?s)^(grad's )?value of.*nan",
        "One last bit more is nan.",
        "torch.special.logit(torch.special.i0(torch.tensor(-1e-8, dtype=torch.float64)))",
        program=r"special\.logit\(",
    ),
    Known(
        "Norms of matrices without elements",
        VALUE,
        r"^requires_grad of",
        "They require grad as the matrices do, and their gradients are 0; in PyTorch some do not.",
        "torch.linalg.matrix_norm(torch.zeros(0, 0, requires_grad=True), torch.inf)",
        r"norm\(",
    ),
    Known(
        "Upper incomplete gamma functions of small orders",
        VALUE,
        r"^(grad's )?value of",
        "They have errors of 1e-14 of the result here; PyTorch's are up to 70 % off for orders below 1e-15, and in "
        "float32 they have few digits.",
        "torch.special.gammaincc(torch.tensor(1e-24), torch.tensor(0.5))",
        program=r"special\.gammaincc?\(",
    ),
    Known(
        "The derivative of log_ndtr far below zero",
        VALUE,
        r"^grad's value of",
        "It is minus the argument, in PyTorch 0 or nan.",
        "torch.special.log_ndtr(torch.tensor(-1e10, requires_grad=True)).backward()",
        program=r"special\.log_ndtr\(",
    ),
    Known(
        "The direction of a negative determinant",
        VALUE,
        r"(?s)^value of.*3\.14159",
        "Its logarithm has the imaginary part pi or -pi, as the sign of a zero imaginary part is.",
        "torch.logdet(torch.tensor([[-1 - 0j]]))",
        program=r"logdet\(",
    ),
    Known(
        "Modified Bessel functions of subnormal numbers",
        VALUE,
        r"^(grad's )?value of",
        "These have few digits, and which is next to a result in float32 is decided by its rounding.",
        "torch.special.modified_bessel_k0(torch.special.modified_bessel_k1(torch.tensor(100.0)))",
        program=r"modified_bessel_k[01]\(.*float32|float32(?s:.*)modified_bessel_k[01]\(",
    ),
)
