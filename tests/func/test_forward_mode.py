"""Forward mode where it has rules of its own: complex results, changes in place, factorisations, Functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import forward_ad
from tritensor.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from .test_transformations import close, point


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: (x * 1j).imag, 1.0),
        (lambda x: (1j * x).imag, 1.0),
        (lambda x: (x / 1j).imag, -1.0),
        (lambda x: (1j / x).imag, -0.25),
        (lambda x: (x * (2 + 3j)).real, 2.0),
        (lambda x: (x + 1j).imag, 0.0),
        (lambda x: torch.view_as_real(x * torch.tensor([1j]))[..., 1], 1.0),
    ],
)
def test_the_tangent_of_a_complex_result_of_a_real_input(function: Any, expected: float) -> None:
    x = torch.tensor([2.0], dtype=torch.float64)
    for transform in (jacfwd, jacrev):
        assert abs(transform(function)(x).item() - expected) < 1e-12


def changed(x: Any) -> Any:
    y = x.clone()
    y[0] = x[1] ** 2
    y.mul_(x)
    return y.add_(x.sin())


def filled(x: Any) -> Any:
    y = torch.zeros(2, dtype=x.dtype)
    y[0] = x[1] ** 2
    y[1:].copy_(x[:1].exp())
    return y


def through_views(x: Any) -> Any:
    y = x.new_zeros(3, 2)
    first, row = y[:, 0], y[1]
    row.copy_(x * x)  # gives all views of y a tangent
    first.add_(x[0].exp())
    return torch.stack([row.sum(), first.sum(), y.prod()])


def zeroed(x: Any) -> Any:
    y = x * x
    y[:1].zero_()
    return y * x


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "function",
    [
        changed,
        filled,
        through_views,
        zeroed,
        lambda x: torch.nn.functional.cosine_similarity(x, x.exp(), 0).reshape(1),
        lambda x: torch.logcumsumexp(x, 0),
        lambda x: torch.linalg.matrix_exp(torch.outer(x, x.sin())),
        lambda x: torch.linalg.lstsq(torch.stack([x, x * x, x.sin()]), x.new_ones(3, 1) * x.sum()).solution,
        lambda x: torch.frexp(x * x)[0],
    ],
)
def test_second_derivatives_are_the_same_in_each_order_of_modes(function: Any) -> None:
    x = torch.tensor([0.3, 1.7], dtype=torch.float64)
    expected = jacrev(jacrev(function))(x)
    assert np.isfinite(expected.numpy()).all()
    for transform in (jacfwd(jacrev(function)), jacfwd(jacfwd(function)), jacrev(jacfwd(function))):
        close(transform(x), expected)
    close(jacfwd(function)(x), jacrev(function)(x))
    if function is not filled:  # its tensor of zeros is one for all samples
        close(vmap(jacfwd(jacfwd(function)))(torch.stack([x, x])), torch.stack([expected] * 2))


def test_the_hessian_of_logcumsumexp() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    share = torch.sigmoid(x[0] - x[1])
    slope = (share * (1 - share)).item()
    close(
        hessian(lambda x: torch.logcumsumexp(x, 0).sum())(x), torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double() * slope
    )


def test_a_view_shares_the_tangents_that_another_view_was_given() -> None:
    with forward_ad.dual_level():
        y = torch.zeros(2, 2)
        row, other = y[0], y[:, 1]
        row.copy_(forward_ad.make_dual(torch.ones(2), torch.tensor([3.0, 4.0])))
        assert forward_ad.unpack_dual(other).tangent.tolist() == [4.0, 0.0]
        assert forward_ad.unpack_dual(y).tangent.tolist() == [[3.0, 4.0], [0.0, 0.0]]


def test_a_value_that_all_samples_share_is_not_written_over_by_one_that_differs() -> None:
    y = torch.zeros(2)
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda x: jvp(lambda x: y.add_(x), (x,), (x,))[1])(torch.ones(3, 2))


def test_gradients_of_what_all_samples_share_and_write_or_return() -> None:
    x, y = point(2).requires_grad_(), point(3, 2)

    def written(x: Any, y: Any) -> Any:
        z = y * 1
        z[0] = x.sum()
        return z * y

    (found,) = torch.autograd.grad(vmap(written, in_dims=(None, 0))(x, y).sum(), x)
    close(found, y[:, 0].sum().expand(2))
    (found,) = torch.autograd.grad(vmap(lambda x, y: x * 2, in_dims=(None, 0))(x, y).sum(), x)
    close(found, torch.full((2,), 6.0, dtype=x.dtype))


def test_least_squares_have_the_tangent_of_the_pseudoinverse() -> None:
    a, b, da, db = point(4, 2), point(4, 1, seed=1), point(4, 2, seed=2), point(4, 1, seed=3)
    found = jvp(lambda a, b: torch.linalg.lstsq(a, b).solution, (a, b), (da, db))[1]
    close(found, jvp(lambda a, b: torch.linalg.pinv(a) @ b, (a, b), (da, db))[1])
    assert found.abs().min() > 0


@pytest.mark.parametrize("upper", [False, True])
def test_the_tangent_of_cholesky_inverse_reads_one_triangle(upper: bool) -> None:
    x, direction = point(3, 3) + 3 * torch.eye(3, dtype=torch.float64), point(3, 3, seed=1)

    def invert(x: Any) -> Any:
        return torch.cholesky_inverse(x, upper=upper)

    quotient = (invert(x + 1e-6 * direction) - invert(x - 1e-6 * direction)) / 2e-6
    close(jvp(invert, (x,), (direction,))[1], quotient, 1e-7)


def test_matrix_exp_of_samples() -> None:
    x = torch.stack([point(2, 2), 20 * point(2, 2, seed=1), point(2, 2) * 0])
    rows = torch.stack([torch.linalg.matrix_exp(each) for each in x])
    close(vmap(torch.linalg.matrix_exp)(x), rows)
    close(vmap(torch.linalg.matrix_exp, in_dims=1)(x.movedim(0, 1)), rows)
    close(jacrev(torch.linalg.matrix_exp)(x[0]), jacfwd(torch.linalg.matrix_exp)(x[0]))
    close(vmap(jacrev(torch.linalg.matrix_exp))(x)[2], torch.eye(4, dtype=x.dtype).reshape(2, 2, 2, 2))


SINGULAR = {
    "of rank 1": ([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]),
    "of zeros": ([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    "of two equal singular values": ([[3.0, 0, 0], [0, 3.0, 0], [0, 0, 0]], [[0.0, 0, 0], [0, 0, 0], [0, 0, 9.0]]),
    "of rank 1 of 3": ([[1.0, 2, 3], [2, 4, 6], [3, 6, 9]], [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_derivatives_of_the_determinant_of_a_singular_matrix(name: str) -> None:
    matrix, cofactors = (torch.tensor(each, dtype=torch.float64) for each in SINGULAR[name])
    x, direction = matrix.clone().requires_grad_(), point(*matrix.shape)
    (found,) = torch.autograd.grad(torch.linalg.det(x), x, create_graph=True)
    close(found, cofactors, 1e-12)
    close(jvp(torch.linalg.det, (matrix,), (direction,))[1], (cofactors * direction).sum(), 1e-12)

    def slope(x: Any) -> Any:
        return grad(torch.linalg.det)(x)

    quotient = (slope(matrix + 1e-4 * direction) - slope(matrix - 1e-4 * direction)) / 2e-4
    (twice,) = torch.autograd.grad((found * direction).sum(), x)
    close(twice, quotient, 1e-7)  # the second derivative is symmetric
    for second in (
        jacfwd(jacrev(torch.linalg.det)),
        jacrev(jacrev(torch.linalg.det)),
        jacfwd(jacfwd(torch.linalg.det)),
    ):
        close((second(matrix) * direction).sum((2, 3)), quotient, 1e-7)


def test_derivatives_of_the_determinant_of_a_complex_singular_matrix() -> None:
    matrix = torch.complex(point(3, 3), point(3, 3, seed=1))
    matrix[2] = matrix[0] * 2j
    direction = torch.complex(point(3, 3, seed=2), point(3, 3, seed=3))

    def slope(x: Any) -> Any:
        return grad(lambda x: (torch.linalg.det(x) * (0.3 + 0.7j)).real)(x)

    quotient = (slope(matrix + 1e-4 * direction) - slope(matrix - 1e-4 * direction)) / 2e-4
    close(jvp(slope, (matrix,), (direction,))[1], quotient, 1e-6)


def test_third_derivatives_of_the_determinant() -> None:
    x, a = point(3, 3), point(3, 3, seed=1)
    along = jvp(hessian(torch.linalg.det), (x,), (a,))[1]
    quotient = (hessian(torch.linalg.det)(x + 1e-4 * a) - hessian(torch.linalg.det)(x - 1e-4 * a)) / 2e-4
    close(along, quotient, 1e-6)
    close(jacrev(hessian(torch.linalg.det))(x).mul(a).sum((-2, -1)), quotient, 1e-6)


# ---- Functions ------------------------------------------------------------------------------------------------------

CALLS: list[Any] = []


class Power(torch.autograd.Function):
    @staticmethod
    def forward(x: Any, y: Any, k: float) -> Any:
        return x**3 * y * k, x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, outputs: Any) -> None:
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y, outputs[1])
        ctx.save_for_forward(x, y, outputs[1])

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y, e = ctx.saved_tensors
        return g * 3 * x**2 * y * ctx.k + h * e, g * x**3 * ctx.k, None

    @staticmethod
    def jvp(ctx: Any, s: Any, t: Any, none: Any) -> Any:
        x, y, e = ctx.saved_tensors
        CALLS.append(("jvp", none))
        return 3 * x**2 * y * ctx.k * s + x**3 * ctx.k * t, e * s

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any, k: float) -> Any:
        CALLS.append((info.batch_size, info.randomness, in_dims))
        x, y = (z[..., None] if d is None else z.movedim(d, -1) for z, d in zip((x, y), in_dims[:2], strict=True))
        return Power.apply(x, y, k), -1


def by_function(x: Any) -> Any:
    out, exponential = Power.apply(x.sin(), x, 2.0)
    return out * exponential.cos()


def by_operators(x: Any) -> Any:
    return x.sin() ** 3 * x * 2.0 * x.sin().exp().cos()


def test_a_function_with_rules_of_its_own_in_each_order_of_modes() -> None:
    x = point(3)
    modes = (jacfwd, jacrev)
    for outer in modes:
        close(outer(by_function)(x), outer(by_operators)(x))
        for inner in modes:
            close(outer(inner(by_function))(x), outer(inner(by_operators))(x))
    third = jacfwd(jacfwd(jacfwd(lambda x: by_function(x).sum())))(x)
    close(third, jacrev(jacrev(jacrev(lambda x: by_operators(x).sum())))(x))
    batch = point(4, 3)
    close(vmap(jacfwd(by_function))(batch), vmap(jacfwd(by_operators))(batch))
    close(vmap(hessian(lambda x: by_function(x).sum()))(batch), vmap(hessian(lambda x: by_operators(x).sum()))(batch))
    close(grad(lambda x: vmap(by_function)(x).sum())(batch), grad(lambda x: by_operators(x).sum())(batch))


def test_a_function_is_told_of_the_batch_and_gets_its_tangents() -> None:
    CALLS.clear()
    x, y = point(3, 2), point(3, seed=1)
    found = vmap(lambda x: Power.apply(x, y, 1.0), in_dims=1, out_dims=(0, 0), randomness="same")(x)
    close(found[1], x.mT.exp())
    assert CALLS == [(2, "same", (0, None, None))]
    CALLS.clear()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(y, torch.ones_like(y))
        tangent = forward_ad.unpack_dual(Power.apply(dual, y, 1.0)[0]).tangent
    close(tangent, 3 * y**3)
    assert CALLS == [("jvp", None)]


def test_a_function_without_jvp_is_differentiated_as_it_is() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

    x = point(2)
    close(jvp(Square.apply, (x,), (x,))[1], 2 * x * x)
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Square.jvp(None)
    with pytest.raises(NotImplementedError, match="override the vmap staticmethod"):
        Square.vmap(None, ())


def test_a_function_that_returns_too_few_tangents_is_refused() -> None:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    x = point(2)
    with pytest.raises(RuntimeError, match=r"incorrect number of forward gradients \(expected 2, got 1\)"):
        jvp(Two.apply, (x,), (x,))


# ---- changes in place, constants, and what is the same for all samples ----------------------------------------------


def test_a_part_that_is_written_inside_passes_on_the_gradient_of_the_whole() -> None:
    def written(x: Any, y: Any) -> Any:
        z = y * 1
        z[0].add_(x.sum())
        return z.sin()

    x, y = point(2), point(3, seed=1)
    first, rest = y[:1] + x.sum(), y[1:]
    expected = torch.cat([first.cos(), rest.cos()]).diag()
    close(jacrev(lambda y: jvp(lambda x: written(x, y), (x,), (x,))[0])(y), expected)
    slope = jacrev(jacfwd(written), argnums=1)(x, y)
    close(slope, torch.zeros(3, 2, 3, dtype=x.dtype).index_put((torch.tensor(0), ..., torch.tensor(0)), -first.sin()))


def test_what_does_not_move_keeps_its_gradient_beside_forward_mode() -> None:
    x, y = point(2), point(2, seed=1)
    close(grad(lambda y: jacfwd(lambda x: (x, y.cos()), has_aux=True)(x)[1].sum())(y), -y.sin())
    close(grad(lambda y: jvp(lambda x: y.cos(), (x,), (x,))[0].sum())(y), -y.sin())


def test_a_backward_pass_of_a_function_inside_of_forward_mode_is_that_of_a_constant() -> None:
    def slope(x: Any, y: Any) -> Any:
        return vjp(lambda x, y: (Power.apply(y, y, 2.0)[0].sum(), x.exp()), x, y)[1]((torch.ones_like(x[0]), x))[1]

    x, y = point(2), point(2, seed=1)
    value, tangent = jvp(lambda x: slope(x, y), (x,), (x,))
    close(value, 8 * y**3)
    close(tangent, torch.zeros_like(y))


def test_the_tangent_of_values_for_one_place_is_that_of_the_one_that_is_kept() -> None:
    x = point(1)

    def written(x: Any) -> Any:
        y = x * 1
        y[[0, -1]] = x[[0, 0]] * 3
        return y

    close(jvp(written, (x,), (x,))[1], x * 3)
    index = torch.zeros(2, dtype=torch.int64)
    close(jvp(lambda x: x.scatter(0, index, x[[0, 0]] * 3), (x,), (x,))[1], x * 3)


def test_a_mask_that_is_the_same_for_all_samples_chooses_places() -> None:
    def written(x: Any) -> Any:
        y = x * 1
        y[x > 0] = 0.25
        return y.square()

    x = torch.tensor([1.5, -2.0], dtype=torch.float64)
    close(jacrev(jacfwd(written))(x)[1, 1], torch.tensor([0.0, 2.0], dtype=x.dtype))


def test_a_number_is_written_to_samples_of_samples_with_tangents() -> None:
    def written(x: Any) -> Any:
        y = x * 2
        y[0] = 0.5
        return y

    found = vmap(jacfwd(written))(point(3, 2).requires_grad_())
    close(found, torch.tensor([[0.0, 0.0], [0.0, 2.0]], dtype=found.dtype).expand(3, 2, 2))


def test_the_second_derivative_of_sinc_at_zero() -> None:
    x = torch.tensor(0.0, dtype=torch.float64)
    for modes in ((grad, grad), (jacfwd, grad), (jacfwd, jacfwd)):
        close(modes[0](modes[1](torch.sinc))(x), torch.tensor(-(np.pi**2) / 3, dtype=x.dtype))
