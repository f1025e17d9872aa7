"""Pruning: masks that set elements of parameters to zero, and the methods that choose these elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

from ...errors import require
from ...functional.creation.likeness import ones_like
from ...functional.indexing.search import topk
from ...functional.reduction.reductions import norm
from ...random import rand, rand_like
from ...tensors import Tensor
from ..module import Module
from .convert_parameters import parameters_to_vector
from .hooked import Computed, hooks_of, remove_hook

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer"]
__all__ += [
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
]
__all__ += ["l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]


def _check_scores(scores: Tensor | None, like: Tensor, what: str) -> Tensor:
    if scores is not None and scores.shape != like.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs {like.shape}"
        )
    return like if scores is None else scores


class BasePruningMethod(Computed):
    """The base class of pruning methods: `compute_mask(t, default_mask)` returns the mask for importance scores `t`.

    A derived class says with PRUNING_TYPE what it is given of a tensor that is pruned already: "unstructured" the
    elements that are left, "structured" the slices along its `dim` that are left, "global" everything.
    """

    PRUNING_TYPE = "global"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask of zeros and ones, zero where `default_mask` is."""
        raise NotImplementedError

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter's original values times the mask."""
        mask, original = (getattr(module, f"{self._tensor_name}_{each}") for each in ("mask", "orig"))
        return mask.to(original.dtype) * original

    compute = apply_mask

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter by this method, of these arguments, in addition to what was pruned before.

        Raises:
            AssertionError: scores of another shape.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        known = list(hooks_of(module, BasePruningMethod, name))
        value = getattr(module, name)
        scores = _check_scores(importance_scores, value, f"parameter {name} of {module}")
        if not known:
            mask = method.compute_mask(scores, default_mask=ones_like(value))
            method.replace(module, {"_orig": value}, {"_mask": mask})
            return method
        ((key, hook),) = known
        container = PruningContainer(*(hook if isinstance(hook, PruningContainer) else [hook]), method)
        mask = container.compute_mask(scores, default_mask=getattr(module, f"{name}_mask").detach().clone())
        del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        container(module, ())
        module.register_forward_pre_hook(container)
        return container

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor times the mask that the method computes for it, or for the scores."""
        scores = _check_scores(importance_scores, t, "tensor t")
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter's own."""
        original = module._parameters[f"{self._tensor_name}_orig"]
        assert original is not None
        original.data = self.apply_mask(module).detach()
        self.restore(module, original, "_orig", "_mask")


class PruningContainer(BasePruningMethod):
    """Several methods of one parameter, of which the last one chooses from what the others have left.

    Raises:
        TypeError: not a method. ValueError: a method of another parameter.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method together with `default_mask`."""
        method: Any = self._pruning_methods[-1]
        left: Any = slice(None)
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            dim = _dim_of(t, method.dim)
            others = [each for each in range(t.ndim) if each != dim]
            left = (slice(None),) * dim + (default_mask.sum(dim=others) != 0,)
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype).clone()
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask (of ones)."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask`."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is zero."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


class _OfAmount(BasePruningMethod):
    """Base of the methods that prune a number, or a share, of the elements, or slices, of the lowest scores."""

    amount: float

    def __init__(self, amount: float) -> None:
        require(isinstance(amount, Real), TypeError, "Invalid type for amount: {}. Must be int or float.", amount)
        if amount < 0 or (amount > 1 and not isinstance(amount, Integral)):
            words = f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
            raise ValueError(words)
        self.amount = amount

    def _lowest(self, scores: Tensor) -> Tensor:
        """The places of the lowest of a vector of scores."""
        size = scores.numel()
        count = int(self.amount) if isinstance(self.amount, Integral) else round(self.amount * size)
        if count > size:
            raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
        return topk(scores, count, largest=False).indices


class L1Unstructured(_OfAmount):
    """Prunes the elements of lowest magnitude; `amount` is their number, or their share of those left."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` without the elements of the lowest scores."""
        mask = default_mask.clone().contiguous()
        mask.view(-1)[self._lowest(self._scores(t.detach()).reshape(-1))] = 0
        return mask


class RandomUnstructured(L1Unstructured):
    """Prunes elements at random; `amount` is their number, or their share of those that are left."""

    def _scores(self, t: Tensor) -> Tensor:
        return rand_like(t)


def _dim_of(t: Tensor, dim: int) -> int:
    require(-t.ndim <= dim < t.ndim, IndexError, "Invalid index {} for tensor of size {}", dim, t.shape)
    return dim % t.ndim


class RandomStructured(_OfAmount):
    """Prunes slices along `dim` at random; `amount` is their number, or their share of those that are left."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor, dim: int) -> Tensor:
        return rand(t.shape[dim], device=t.device)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` without the slices of the lowest scores."""
        if t.ndim <= 1:
            words = "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape"
            raise ValueError(f"{words} {t.shape} with {t.ndim} dims")
        dim = _dim_of(t, self.dim)
        mask = default_mask.to(t.dtype).clone()
        return mask.index_fill_(dim, self._lowest(self._scores(t.detach(), dim)), 0)


class LnStructured(RandomStructured):
    """Prunes the slices along `dim` of the lowest norm of order `n`; `amount` as for `RandomStructured`."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, dim: int) -> Tensor:
        return norm(t, self.n, [each for each in range(t.ndim) if each != dim])


def _pruned(kind: type[BasePruningMethod], module: Module, name: str, **options: Any) -> Module:
    kind.apply(module, name, **options)
    return module


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones; returns the module."""
    return _pruned(Identity, module, name)


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random: `amount` of them, or this share; returns the module.

    The parameter becomes `weight_orig`, the mask is the buffer `weight_mask`, and `weight` their product.

    >>> from tritensor import nn
    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 3), "weight", amount=2)
    >>> int((layer.weight == 0).sum()), list(layer.state_dict())
    (2, ['bias', 'weight_orig', 'weight_mask'])
    """
    return _pruned(RandomUnstructured, module, name, amount=amount)


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter, or of the scores, of lowest magnitude (L1); returns the module."""
    return _pruned(L1Unstructured, module, name, amount=amount, importance_scores=importance_scores)


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter along `dim` at random; returns the module."""
    return _pruned(RandomStructured, module, name, amount=amount, dim=dim)


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of a parameter, or of the scores, along `dim` that have the lowest norm of order `n`."""
    return _pruned(LnStructured, module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is zero; returns the module."""
    return _pruned(CustomFromMask, module, name, mask=mask)


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters globally: their elements compete as if they were one.

    Args:
        parameters: modules, and names of their parameters.
        kwargs: the method's.

    Raises:
        TypeError: a method that is not unstructured, or scores that are no dict.
    """
    require(isinstance(parameters, Iterable), TypeError, "global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores or {}, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method, pairs = pruning_method(**kwargs), list(parameters)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    values = [getattr(module, name) for module, name in pairs]
    scores = [(importance_scores or {}).get(pair, value) for pair, value in zip(pairs, values, strict=True)]
    known = [
        getattr(module, f"{name}_mask", ones_like(value)) for (module, name), value in zip(pairs, values, strict=True)
    ]
    method._tensor_name = "temp"
    whole = PruningContainer(method).compute_mask(parameters_to_vector(scores), parameters_to_vector(known))
    for (module, name), mask in zip(pairs, whole.split([value.numel() for value in values]), strict=True):
        custom_from_mask(module, name, mask.view(getattr(module, name).shape))


def remove(module: Module, name: str) -> Module:
    """Make pruning permanent: the pruned values become the parameter's own; returns the module.

    Raises:
        ValueError: it was not pruned.
    """
    words = f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    return remove_hook(module, BasePruningMethod, name, words)


def is_pruned(module: Module) -> bool:
    """True if a parameter of the module, or of one within it, is pruned."""
    hooks = (hook for each in module.modules() for hook in each._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
