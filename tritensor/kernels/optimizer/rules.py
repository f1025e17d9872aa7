"""The rules of optimizers: each has a formula for every element and a schedule for the numbers that the rule takes.

A rule has the inputs (param, grad, *state) and the results (param, *state). It is a body for Triton. The NumPy
reference (`words.py`), the passes over memory on the CPU (`passes.py`) and a differentiable step are made from the same
text; tests compare it with formulas of their own and with PyTorch.

A schedule takes the learning rate, what a parameter's state counts (`step`, from 1), and the options by their names. It
returns the new values of what else is counted (`mu_product`), and the numbers of the rule in its order. They are
computed in double precision, on the host or, for a step that is captured, on the device: in a device's float32,
1 - 0.999 has only four digits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...operators import Operator
from ...operators.rules import REAL_FLOAT
from ...runtime.launch import device_function
from .words import ARRAYS, choose, larger, power, root_of, sign_of, single, size_of, smaller, spoken

if TYPE_CHECKING:
    import triton.language as tl  # noqa: F401

__all__ = ["adadelta", "adadelta_numbers", "adagrad", "adagrad_numbers", "adam", "adam_amsgrad", "adam_numbers"]
__all__ += ["adamax", "adamax_numbers", "asgd", "asgd_numbers", "average", "descend", "nadam", "nadam_numbers", "radam"]
__all__ += ["radam_numbers", "rmsprop", "rmsprop_centered", "rmsprop_centered_momentum", "rmsprop_momentum"]
__all__ += ["rmsprop_numbers", "rprop", "rprop_numbers", "sgd", "sgd_momentum", "sgd_numbers"]


class Update(Operator):
    """The rule of an optimizer. It changes what it is given: `steps.py` on the CPU, `multi_tensor.py` on devices."""

    family = "optimizer"


def rule(**numbers: float) -> Callable[[Callable[..., Any]], Update]:
    """Declare the rule of an optimizer, whose numbers have these values in tests."""

    def declare(body: Callable[..., Any]) -> Update:
        compute = spoken(body, ARRAYS)

        def reference(*arrays: Any, **metadata: float) -> Any:
            return compute(*arrays, *[metadata[name] for name in numbers])

        signature = inspect.signature(body)
        reference.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                each.replace(kind=each.KEYWORD_ONLY, default=numbers[name]) if name in numbers else each
                for name, each in signature.parameters.items()
            ]
        )
        reference.__name__, reference.__doc__ = body.__name__, body.__doc__
        state = [name for name in signature.parameters if name not in numbers][2:]
        outputs = ["new_param", *(f"new_{name}" for name in state)]
        return Update(body.__name__, reference, REAL_FLOAT, outputs=outputs, register=False).kernel(body)

    return declare


@device_function
def _decayed(grad, param, l2, sign):
    """Without decay an infinite parameter adds nothing."""
    return sign * grad + choose(l2 != 0, l2 * param, 0.0)


@device_function
def _lerp(start, end, kept, rest):
    """Between the two from the nearer one, as `lerp`: an infinite average stays infinite in no other way."""
    return choose(rest < 0.5, start + rest * (end - start), end - kept * (end - start))


@device_function
def _l2_and_shrink(lr, weight_decay, decoupled):
    return choose(decoupled != 0, 0.0, weight_decay), choose(decoupled != 0, 1 - lr * weight_decay, 1.0)


# ---- gradient descent ------------------------------------------------------------------------------------------


@rule(lr=1e-3, l2=0.0, sign=1.0)
def sgd(param, grad, lr, l2, sign):
    """One step of gradient descent."""
    return param - lr * _decayed(grad, param, l2, sign)


@rule(lr=1e-3, l2=0.0, sign=1.0, momentum=0.9, kept=1.0, nesterov=0.0)
def sgd_momentum(param, grad, momentum_buffer, lr, l2, sign, momentum, kept, nesterov):
    """One step of gradient descent with momentum; `nesterov` is 1 to look ahead."""
    grad = _decayed(grad, param, l2, sign)
    buffer = momentum * momentum_buffer + kept * grad
    direction = buffer
    if nesterov != 0:  # a choice for each element needs so many predicates on sm_80 that one is spilled
        direction = grad + momentum * buffer
    return param - lr * direction, buffer


@device_function
def sgd_numbers(lr, first, weight_decay, sign, momentum, dampening, nesterov):
    """A parameter's first direction is its whole gradient."""
    return lr, weight_decay, sign, momentum, choose(first != 0, 1.0, 1 - dampening), nesterov


@rule(l2=0.0, sign=1.0, eta=0.01, shrink=0.99, mu=0.5)
def asgd(param, grad, ax, l2, sign, eta, shrink, mu):
    """One step of averaged gradient descent, by Polyak and Juditsky (1992); `ax` is the average."""
    param = shrink * param - eta * _decayed(grad, param, l2, sign)
    average = param
    if mu != 1:
        average = ax + mu * (param - ax)
    return param, average


@device_function
def asgd_numbers(lr, step, eta, mu, lambd, alpha, t0, weight_decay, sign):
    """The step is made with the rate and the share that the last one has left."""
    after = lr / power(1 + lambd * lr * step, alpha)
    return single(after), single(1 / larger(step - t0, 1.0)), weight_decay, sign, eta, 1 - lambd * eta, mu


@rule(sign=1.0, eta1=0.5, eta2=1.2, least=1e-6, most=50.0)
def rprop(param, grad, prev, step_size, sign, eta1, eta2, least, most):
    """One step of resilient propagation, by Riedmiller and Braun (1993)."""
    grad = sign * grad
    turn = grad * prev
    factor = choose(turn > 0, eta2, choose(turn < 0, eta1, turn * 0.0 + 1.0))
    step_size = smaller(larger(step_size * factor, least), most)
    grad = choose(turn < 0, 0.0, grad)
    return param - sign_of(grad) * step_size, grad, step_size


@device_function
def rprop_numbers(lr, eta1, eta2, step_size1, step_size2, sign):
    """The options as they are."""
    return sign, eta1, eta2, step_size1, step_size2


# ---- parts of the steps that compute with matrices -------------------------------------------------------------


@rule(rate=0.1, shrink=0.9)
def descend(param, grad, rate, shrink):
    """A step by an update that was computed before."""
    return shrink * param - rate * grad


@rule(kept=0.9, rest=0.1)
def average(param, grad, kept, rest):
    """A running average, and what joins it."""
    return _lerp(param, grad, kept, rest)


# ---- steps scaled by averages of squares ------------------------------------------------------------------------


@rule(beta1=0.9, rest1=0.1, beta2=0.999, rest2=0.001, rate=1e-3, eps=1e-8, l2=0.0, shrink=1.0, sign=1.0)
def adam(param, grad, exp_avg, exp_avg_sq, beta1, rest1, beta2, rest2, rate, eps, l2, shrink, sign):
    """One step of Adam, by Kingma and Ba (2015).

    `rest1` and `rest2` are 1 - beta, `l2` adds a share of the parameter to the gradient (Adam's weight decay), `shrink`
    scales the parameter before the step (AdamW's), `sign` is -1 to maximise. `rate` and `eps` include the corrections
    of both averages.
    """
    grad = _decayed(grad, param, l2, sign)
    exp_avg = _lerp(exp_avg, grad, beta1, rest1)
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    return shrink * param - rate * (exp_avg / (root_of(exp_avg_sq) + eps)), exp_avg, exp_avg_sq


@rule(beta1=0.9, rest1=0.1, beta2=0.999, rest2=0.001, rate=1e-3, eps=1e-8, l2=0.0, shrink=1.0, sign=1.0)
def adam_amsgrad(
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, beta1, rest1, beta2, rest2, rate, eps, l2, shrink, sign
):
    """One step of AMSGrad, by Reddi et al. (2018): Adam whose second moment never shrinks."""
    grad = _decayed(grad, param, l2, sign)
    exp_avg = _lerp(exp_avg, grad, beta1, rest1)
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    highest = larger(max_exp_avg_sq, exp_avg_sq)
    return shrink * param - rate * (exp_avg / (root_of(highest) + eps)), exp_avg, exp_avg_sq, highest


@device_function
def adam_numbers(lr, step, beta1, beta2, eps, weight_decay, decoupled_weight_decay, sign):
    """Both averages are corrected for their beginning at 0."""
    root = root_of(1 - power(beta2, step))  # multiplied into eps and the rate, which saves a pass
    l2, shrink = _l2_and_shrink(lr, weight_decay, decoupled_weight_decay)
    return beta1, 1 - beta1, beta2, 1 - beta2, lr * root / (1 - power(beta1, step)), eps * root, l2, shrink, sign


@rule(beta1=0.9, rest1=0.1, beta2=0.999, rest2=0.001, now=0.1, ahead=0.1, eps=1e-8, l2=0.0, shrink=1.0, sign=1.0)
def nadam(param, grad, exp_avg, exp_avg_sq, beta1, rest1, beta2, rest2, now, ahead, eps, l2, shrink, sign):
    """One step of Adam with Nesterov's momentum, by Dozat (2016): `now` and `ahead` are the shares of the gradient and
    of its average."""
    grad = _decayed(grad, param, l2, sign)
    exp_avg = _lerp(exp_avg, grad, beta1, rest1)
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    return shrink * param - (now * grad + ahead * exp_avg) / (root_of(exp_avg_sq) + eps), exp_avg, exp_avg_sq


@device_function
def nadam_numbers(lr, step, mu_product, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, sign):
    """The momentum grows with the steps; its product is kept."""
    root = root_of(1 - power(beta2, step))
    mu = beta1 * (1 - 0.5 * power(0.96, step * momentum_decay))
    following = beta1 * (1 - 0.5 * power(0.96, (step + 1) * momentum_decay))
    mu_product = single(mu_product * single(mu))  # a product of float32 numbers
    now, ahead = lr * root * (1 - mu) / (1 - mu_product), lr * root * following / (1 - mu_product * following)
    l2, shrink = _l2_and_shrink(lr, weight_decay, decoupled_weight_decay)
    return mu_product, beta1, 1 - beta1, beta2, 1 - beta2, now, ahead, eps * root, l2, shrink, sign


@rule(beta1=0.9, rest1=0.1, beta2=0.999, rest2=0.001, rate=1e-3, eps=1e-8, adapted=1.0, l2=0.0, shrink=1.0, sign=1.0)
def radam(param, grad, exp_avg, exp_avg_sq, beta1, rest1, beta2, rest2, rate, eps, adapted, l2, shrink, sign):
    """One step of rectified Adam, by Liu et al. (2020); `adapted` is 0 while there are too few squares to scale by."""
    grad = _decayed(grad, param, l2, sign)
    exp_avg = _lerp(exp_avg, grad, beta1, rest1)
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    direction = exp_avg
    if adapted != 0:
        direction = exp_avg / (root_of(exp_avg_sq) + eps)
    return shrink * param - rate * direction, exp_avg, exp_avg_sq


@device_function
def radam_numbers(lr, step, beta1, beta2, eps, weight_decay, decoupled_weight_decay, sign):
    """Steps are scaled once the average is more than 5 steps long."""
    left = power(beta2, step)
    most = 2 / (1 - beta2) - 1
    length = most - 2 * step * left / (1 - left)  # of the average, in steps
    adapted = length > 5
    share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
    rate = lr / (1 - power(beta1, step)) * choose(adapted, root_of(choose(adapted, share, 1.0) * (1 - left)), 1.0)
    l2, shrink = _l2_and_shrink(lr, weight_decay, decoupled_weight_decay)
    return beta1, 1 - beta1, beta2, 1 - beta2, rate, eps, choose(adapted, 1.0, 0.0), l2, shrink, sign


@rule(beta1=0.9, rest1=0.1, beta2=0.999, rate=2e-3, eps=1e-8, l2=0.0, sign=1.0)
def adamax(param, grad, exp_avg, exp_inf, beta1, rest1, beta2, rate, eps, l2, sign):
    """One step of Adam by the largest gradients in place of the mean square, by Kingma and Ba (2015)."""
    grad = _decayed(grad, param, l2, sign)
    exp_avg = _lerp(exp_avg, grad, beta1, rest1)
    exp_inf = larger(beta2 * exp_inf, size_of(grad) + eps)
    return param - rate * (exp_avg / exp_inf), exp_avg, exp_inf


@device_function
def adamax_numbers(lr, step, beta1, beta2, eps, weight_decay, sign):
    """The average is corrected for its beginning at 0."""
    return beta1, 1 - beta1, beta2, lr / (1 - power(beta1, step)), eps, weight_decay, sign


@rule(lr=1e-2, eps=1e-10, l2=0.0, sign=1.0)
def adagrad(param, grad, sum, lr, eps, l2, sign):
    """One step by the sum of the squares of all gradients, by Duchi et al. (2011)."""
    grad = _decayed(grad, param, l2, sign)
    sum = sum + grad * grad
    return param - lr * (grad / (root_of(sum) + eps)), sum


@device_function
def adagrad_numbers(lr, step, lr_decay, eps, weight_decay, sign):
    """The rate is divided by what grows with the steps."""
    return lr / (1 + (step - 1) * lr_decay), eps, weight_decay, sign


@rule(lr=1.0, rho=0.9, rest=0.1, eps=1e-6, l2=0.0, sign=1.0)
def adadelta(param, grad, square_avg, acc_delta, lr, rho, rest, eps, l2, sign):
    """One step scaled by the steps and gradients so far, by Zeiler (2012)."""
    grad = _decayed(grad, param, l2, sign)
    square_avg = rho * square_avg + rest * grad * grad
    delta = root_of((acc_delta + eps) / (square_avg + eps)) * grad
    return param - lr * delta, square_avg, rho * acc_delta + rest * delta * delta


@device_function
def adadelta_numbers(lr, rho, eps, weight_decay, sign):
    """The options as they are."""
    return lr, rho, 1 - rho, eps, weight_decay, sign


@rule(lr=1e-2, alpha=0.99, rest=0.01, eps=1e-8, l2=0.0, sign=1.0)
def rmsprop(param, grad, square_avg, lr, alpha, rest, eps, l2, sign):
    """One step by the root of the mean square of gradients, by Tieleman and Hinton (2012)."""
    grad = _decayed(grad, param, l2, sign)
    square_avg = alpha * square_avg + rest * grad * grad
    return param - lr * (grad / (root_of(square_avg) + eps)), square_avg


@rule(lr=1e-2, alpha=0.99, rest=0.01, eps=1e-8, l2=0.0, sign=1.0, momentum=0.9)
def rmsprop_momentum(param, grad, square_avg, momentum_buffer, lr, alpha, rest, eps, l2, sign, momentum):
    """`rmsprop` with momentum."""
    grad = _decayed(grad, param, l2, sign)
    square_avg = alpha * square_avg + rest * grad * grad
    momentum_buffer = momentum * momentum_buffer + grad / (root_of(square_avg) + eps)
    return param - lr * momentum_buffer, square_avg, momentum_buffer


@rule(lr=1e-2, alpha=0.99, rest=0.01, eps=1e-8, l2=0.0, sign=1.0)
def rmsprop_centered(param, grad, square_avg, grad_avg, lr, alpha, rest, eps, l2, sign):
    """`rmsprop` by the deviation of gradients from their mean, by Graves (2013)."""
    grad = _decayed(grad, param, l2, sign)
    square_avg = alpha * square_avg + rest * grad * grad
    grad_avg = _lerp(grad_avg, grad, alpha, rest)
    return param - lr * (grad / (root_of(square_avg - grad_avg * grad_avg) + eps)), square_avg, grad_avg


@rule(lr=1e-2, alpha=0.99, rest=0.01, eps=1e-8, l2=0.0, sign=1.0, momentum=0.9)
def rmsprop_centered_momentum(
    param, grad, square_avg, momentum_buffer, grad_avg, lr, alpha, rest, eps, l2, sign, momentum
):
    """`rmsprop_centered` with momentum."""
    grad = _decayed(grad, param, l2, sign)
    square_avg = alpha * square_avg + rest * grad * grad
    grad_avg = _lerp(grad_avg, grad, alpha, rest)
    momentum_buffer = momentum * momentum_buffer + grad / (root_of(square_avg - grad_avg * grad_avg) + eps)
    return param - lr * momentum_buffer, square_avg, momentum_buffer, grad_avg


@device_function
def rmsprop_numbers(lr, alpha, eps, weight_decay, sign, momentum):
    """The options as they are."""
    return lr, alpha, 1 - alpha, eps, weight_decay, sign, momentum
