"""Reading a module's state out, and loading one: everything is checked before anything is changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..autograd.mode import no_grad
from ..errors import CheckpointError, warn
from ..tensors import Tensor
from .lazy import Uninitialized
from .parameter import Parameter

EXTRA_STATE = "_extra_state"

# A change that has passed its check; it is made after the whole state dict has been checked. It returns a function that
# reverts it. With `keep=False` the old values need not be kept, and the returned function is not used.
Change = Callable[[bool], Callable[[], Any]]


class IncompatibleKeys(NamedTuple):
    """The result of `load_state_dict`: keys that the module has and the state dict lacks, and the other way round."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def persistent_state(module: Any) -> dict[str, Tensor]:
    """The module's own parameters and persistent buffers by name, without those that are None."""
    hidden = module._non_persistent_buffers_set
    buffers = ((name, buffer) for name, buffer in module._buffers.items() if name not in hidden)
    return {name: value for name, value in (*module._parameters.items(), *buffers) if value is not None}


def save_own(module: Any, destination: dict[str, Any], prefix: str, keep_vars: bool, extra: bool) -> None:
    """Put the module's own state (not that of modules below) into `destination`."""
    for name, value in persistent_state(module).items():
        destination[prefix + name] = value if keep_vars else value.detach()
    if extra:
        destination[prefix + EXTRA_STATE] = module.get_extra_state()


def check_own(
    module: Any,
    state: Mapping[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
    extra: bool,
) -> None:
    """Compare the module's own entries with `state` and plan the copies in `metadata["changes"]`."""
    own = persistent_state(module)
    changes: list[Change] = metadata["changes"]
    for name, current in own.items():
        key = prefix + name
        if key not in state:
            missing.append(key)
            continue
        value = state[key]
        if not isinstance(value, Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            continue
        if isinstance(current, Uninitialized):
            if not isinstance(value, Uninitialized):
                changes.append(_materializing(current, value))
            continue
        if current.ndim == 0 and tuple(value.shape) == (1,):
            value = value[0]  # a scalar as PyTorch 0.3 saved it
        if value.shape != current.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape torch.Size({list(value.shape)}) from checkpoint, "
                f"the shape in current model is torch.Size({list(current.shape)})."
            )
            continue
        assign = metadata.get("assign_to_params_buffers", False)
        if current.is_meta and not value.is_meta and not assign:
            warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)"
            )
        changes.append(_assigning(module, name, value) if assign else _copying(current, value))
    if extra and prefix + EXTRA_STATE in state:
        changes.append(_extra(module, state[prefix + EXTRA_STATE]))
    elif extra:
        missing.append(prefix + EXTRA_STATE)
    for key in state:
        if key.startswith(prefix) and not (extra and key == prefix + EXTRA_STATE):
            name, dot, _ = key[len(prefix) :].partition(".")
            if (dot and name not in module._modules) or (not dot and name not in own):
                unexpected.append(key)


def _copying(current: Tensor, value: Tensor) -> Change:
    def change(keep: bool) -> Callable[[], Any]:
        before = current.detach().clone() if keep else current
        current.copy_(value)
        return lambda: current.copy_(before)

    return change


def _materializing(current: Any, value: Tensor) -> Change:
    def change(keep: bool) -> Callable[[], Any]:
        kind, data = type(current), current.data
        current.materialize(value.shape)
        current.copy_(value)

        def back() -> None:
            current.data, current.__class__ = data, kind

        return back

    return change


def _assigning(module: Any, name: str, value: Tensor) -> Change:
    def change(keep: bool) -> Callable[[], Any]:
        current = module._parameters.get(name)
        table = module._parameters if current is not None else module._buffers
        before = table[name]
        if current is None:
            table[name] = value
        elif isinstance(value, Parameter):
            table[name] = value.requires_grad_(current.requires_grad)
        else:
            table[name] = Parameter(value, current.requires_grad)
        return lambda: table.__setitem__(name, before)

    return change


def _extra(module: Any, saved: dict[str, Any]) -> Change:
    def change(keep: bool) -> Callable[[], Any]:
        before = module.get_extra_state() if keep else None
        module.set_extra_state(saved)
        return lambda: module.set_extra_state(before)

    return change


class _Loading:
    """The keys that a state dict lacks and has too many, and the changes it means, module by module.

    Attributes:
        walked: the modules, each after those below it.
    """

    def __init__(self, metadata: dict[str, Any], assign: bool) -> None:
        self.metadata, self.assign = metadata, assign
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.changes: list[Change] = []
        self.walked: list[Any] = []

    def check(self, module: Any, state: dict[str, Any], prefix: str) -> None:
        """Check the entries of a module and of those below it."""
        local = {**self.metadata.get(prefix[:-1], {}), "changes": self.changes}
        if self.assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(state, prefix, local, True, *self.keys, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.check(child, {key: value for key, value in state.items() if key.startswith(below)}, below)
        self.walked.append(module)


def load(root: object, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Load a state dict into `root` and the modules below; see `Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    loading = _Loading(getattr(state_dict, "_metadata", None) or {}, assign)
    loading.check(root, OrderedDict(state_dict), "")
    keys, errors = loading.keys, loading.errors
    hooks = [(module, hook) for module in loading.walked for hook in module._load_state_dict_post_hooks.values()]
    wrong = strict and bool(keys.missing_keys or keys.unexpected_keys)
    if errors or (wrong and not hooks):
        raise _mismatch(root, keys, errors, strict, state_dict)
    with no_grad():
        # A post hook may clear keys and so make a mismatch acceptable, but it has to see the loaded values. Only then
        # are the old values kept, and restored if the mismatch remains.
        undo = [change(wrong) for change in loading.changes]
        for module, hook in hooks:
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )
        if strict and (keys.missing_keys or keys.unexpected_keys):
            if wrong:
                for back in reversed(undo):
                    back()
            raise _mismatch(root, keys, errors, strict, state_dict)
    return keys


def _mismatch(
    root: object, keys: IncompatibleKeys, errors: list[str], strict: bool, state: Mapping[str, Any]
) -> CheckpointError:
    """The error for a state dict that does not fit: PyTorch's lines, then guesses from the names."""
    lines = list(errors)
    if strict and keys.unexpected_keys:
        lines.insert(0, f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
    if strict and keys.missing_keys:
        lines.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
    first = f"Error(s) in loading state_dict for {type(root).__name__}:"
    return CheckpointError("\n\t".join([first, *lines]) + "".join(f"\n  {hint}" for hint in _hints(keys, state)))


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _hints(keys: IncompatibleKeys, state: Mapping[str, Any]) -> list[str]:
    """Guesses at why keys differ: one prefix in front of all of them, a checkpoint around the state dict, or a name
    spelled differently."""
    missing, unexpected = keys
    if not missing or not unexpected:
        return []
    for key in unexpected:
        inner = state.get(key)
        if isinstance(inner, Mapping) and not inner.keys().isdisjoint(missing):
            return [f"The state dict is the entry {key!r} of what was passed: load_state_dict(checkpoint[{key!r}])"]
    for longer, shorter, verb in ((unexpected, missing, "carry"), (missing, unexpected, "lack")):
        prefix = longer[0].removesuffix(shorter[0])
        if prefix != longer[0] and sorted(prefix + key for key in shorter) == sorted(longer):
            renamed = f"key.removeprefix({prefix!r})" if verb == "carry" else f"{prefix!r} + key"
            return [
                f"All keys of the state dict {verb} the prefix {prefix!r}: rename them before loading, "
                f"{{{renamed}: value for key, value in state_dict.items()}}"
            ]
    import difflib  # imported only for an error: the import takes 2 ms

    hints = []
    candidates = set(unexpected)
    for key in missing[:8]:
        alike = [other for other in candidates if other.count(".") == key.count(".")]
        close = difflib.get_close_matches(key, alike, n=1, cutoff=0.7)
        if close:
            candidates.remove(close[0])
            hints.append(f'"{key}" is missing, and the state dict has "{close[0]}": was it renamed?')
    return hints
