"""PyTorch's older forms of weight and spectral norm, which compute the weight before each call.

Newer code uses `parametrizations`, which computes it whenever it is read.
"""

from __future__ import annotations

from ... import functional as F
from ...autograd.mode import no_grad
from ...errors import warn
from ...functional.attention.attention import normalize
from ...functional.window.native import norm_except_dim
from ...tensors import Tensor
from ..module import Module
from ..parameter import Parameter
from .hooked import Computed, hooks_of, remove_hook
from .parametrizations import output_dimension


def _only_one(module: Module, kind: type[Computed], name: str, title: str) -> None:
    if any(hooks_of(module, kind, name)):
        raise RuntimeError(f"Cannot register two {title} hooks on the same parameter {name}")


class WeightNorm(Computed):
    """Computes a weight as g * v / |v|."""

    def __init__(self, name: str, dim: int | None) -> None:
        self._tensor_name = self.name = name
        self.dim = -1 if dim is None else dim

    def compute(self, module: Module) -> Tensor:
        """The weight."""
        g, v = (getattr(module, f"{self.name}_{each}") for each in "gv")
        return v * (g / norm_except_dim(v, 2, self.dim))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        self.restore(module, Parameter(self.compute(module).detach()), "_g", "_v")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Apply weight normalisation: g * v / |v| of `weight_g` and `weight_v`; `parametrizations.weight_norm` is newer.

    Raises:
        RuntimeError: it is that already.
    """
    words = "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`."
    warn(words, FutureWarning)
    _only_one(module, WeightNorm, name, "weight_norm")
    made, weight = WeightNorm(name, dim), getattr(module, name).detach()
    parameters = {"_g": Parameter(norm_except_dim(weight, 2, made.dim)), "_v": Parameter(weight)}
    made.replace(module, parameters, {})
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Remove weight normalisation from a module: make the weight a parameter again.

    Raises:
        ValueError: it has none.
    """
    return remove_hook(module, WeightNorm, name, f"weight_norm of '{name}' not found in {module}")


class SpectralNorm(Computed):
    """Computes a weight divided by an estimate of its largest singular value, which each call in training improves."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self._tensor_name = self.name = name
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with a row for each output."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute(self, module: Module, improve: bool | None = None) -> Tensor:
        """The weight."""
        weight, u, v = (getattr(module, f"{self.name}_{each}") for each in ("orig", "u", "v"))
        matrix = self.matrix(weight)
        if module.training if improve is None else improve:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(F.mv(matrix.T, u), dim=0, eps=self.eps))
                    u.copy_(normalize(F.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # the next call changes the estimates, and this one's gradient needs them
        return weight / F.dot(u, F.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        self.restore(module, Parameter(self.compute(module, improve=False).detach()), "_u", "_v", "_orig")


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Apply spectral normalisation: divide a weight by its largest singular value; `parametrizations` has a newer form.

    The parameter becomes `weight_orig`, the estimates of the singular vectors are the buffers `weight_u` and
    `weight_v`.

    Raises:
        RuntimeError: it is that already. ValueError: no such parameter, or no iterations.
    """
    _only_one(module, SpectralNorm, name, "spectral_norm")
    made = SpectralNorm(name, n_power_iterations, output_dimension(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    vectors = (weight.detach().new_empty(size).normal_(0, 1) for size in made.matrix(weight.detach()).shape)
    u, v = (normalize(each, dim=0, eps=eps) for each in vectors)
    made.replace(module, {"_orig": weight}, {"_u": u, "_v": v}, first=weight.detach())
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Remove spectral normalisation from a module: make the weight a parameter again.

    Raises:
        ValueError: it has none.
    """
    return remove_hook(module, SpectralNorm, name, f"spectral_norm of '{name}' not found in {module}")
