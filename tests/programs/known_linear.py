"""Results of linear algebra, Fourier transforms and special functions that differ and are meant to."""

from __future__ import annotations

from .kinds import VALUE, Known

LINEAR: tuple[Known, ...] = (
    Known(
        "Polygamma functions",
        VALUE,
        r"^(grad's )?value of",
        "They have errors of 1e-15 here and poles at the negative integers; PyTorch's have errors of 1e-11 and are "
        "finite there.",
        "torch.special.polygamma(1, torch.tensor([-3.0]))",
        program=r"special\.polygamma\(",
    ),
    Known(
        "Zeta functions of huge orders",
        VALUE,
        r"(?s)^(grad's )?value of.*torch: .*nan",
        "They are 0, as their limit is; PyTorch's are nan, of 0 times infinity.",
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
        program=r"special\.\w*polynomial_\w\(",
    ),
    Known(
        "The inverse of a singular matrix",
        VALUE,
        r"(?s)^(grad's )?value of.*nan",
        "Where nothing is raised, all of it is nan; PyTorch returns what the elimination left.",
        "torch.linalg.inv_ex(torch.zeros(2, 2))[0]",
        program=r"((inv|solve)_ex|logdet)\(",
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
        "The strides of a Fourier transform",
        VALUE,
        r"^strides of",
        "It is in the usual order; PyTorch's has the transformed dimensions as the library left them.",
        "torch.fft.ihfft(torch.ones(3, 4), dim=0).stride()",
        r"fft\.",
    ),
)
