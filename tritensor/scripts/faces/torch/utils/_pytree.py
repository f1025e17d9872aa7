"""torch.utils._pytree: nested tuples, lists, dicts and registered classes as their leaves and a structure.

A structure (`TreeSpec`) has a node's type, what rebuilds it besides its children, and the children's structures.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["SUPPORTED_NODES", "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "keystr"]
__all__ += ["register_constant", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_iter"]
__all__ += ["tree_flatten_with_path", "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_map_with_path"]
__all__ += ["tree_structure", "tree_unflatten"]

PyTree = Any
Context = Any


class NodeDef(NamedTuple):
    """How objects of a class are taken apart and made again."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


@dataclass(frozen=True)
class SequenceKey:
    """A position, in a path to a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class MappingKey:
    """A key of a dict, in a path to a leaf."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute, in a path to a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


def keystr(kp: Iterable[Any]) -> str:
    """A path as it is written in Python: `[0]['a'].b`."""
    return "".join(map(str, kp))


@dataclass
class TreeSpec:
    """The structure of a tree; two are equal if they have the same nodes."""

    type: Any
    context: Any
    children_specs: list[TreeSpec]
    num_nodes: int = field(init=False, compare=False)
    num_leaves: int = field(init=False, compare=False)
    num_children: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self.num_children = len(self.children_specs)
        self.num_nodes = 1 + sum(each.num_nodes for each in self.children_specs)
        self.num_leaves = sum(each.num_leaves for each in self.children_specs) if self.type is not None else 1

    def is_leaf(self) -> bool:
        """True for the structure of what is no node."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def __hash__(self) -> int:
        return hash((self.type, str(self.context), *self.children_specs))


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    __hash__ = TreeSpec.__hash__


SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
    **serialized: Any,
) -> None:
    """Take objects of a class apart by a function; what names its serialised form is not used."""
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def register_constant(cls: type) -> None:
    """Objects of the class are part of the structure."""
    register_pytree_node(cls, lambda value: ([], value), lambda values, context: context)


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


register_pytree_node(tuple, _list_flatten, lambda values, _: tuple(values))
register_pytree_node(list, _list_flatten, lambda values, _: list(values))
register_pytree_node(dict, _dict_flatten, lambda values, keys: dict(zip(keys, values)))
register_pytree_node(OrderedDict, _dict_flatten, lambda values, keys: OrderedDict(zip(keys, values)))
register_pytree_node(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda values, context: defaultdict(context[0], zip(context[1], values)),
)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda values, maxlen: deque(values, maxlen))
register_pytree_node(namedtuple, lambda d: (list(d), type(d)), lambda values, kind: kind(*values))  # type: ignore[arg-type]


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


_is_namedtuple_instance = _is_namedtuple


def _get_node_type(tree: PyTree) -> Any:
    return namedtuple if _is_namedtuple(tree) else type(tree)


def _is_leaf(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return _kind(tree, is_leaf) is None


def _kind(tree: PyTree, is_leaf: Callable[[Any], bool] | None) -> Any:
    """The registered class of a node; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if _is_namedtuple(tree) else None


def _walk(
    tree: PyTree,
    is_leaf: Callable[[Any], bool] | None,
    path: tuple[Any, ...],
    leaves: list[tuple[tuple[Any, ...], Any]],
) -> TreeSpec:
    kind = _kind(tree, is_leaf)
    if kind is None:
        leaves.append((path, tree))
        return LeafSpec()
    node = SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is not None:
        pairs, context = node.flatten_with_keys_fn(tree)
        keys, children = [key for key, _ in pairs], [child for _, child in pairs]
    else:
        children, context = node.flatten_fn(tree)
        if isinstance(tree, dict):
            keys = list(map(MappingKey, tree))
        elif kind is namedtuple:
            keys = list(map(GetAttrKey, tree._fields))
        else:
            keys = list(map(SequenceKey, range(len(children))))
    return TreeSpec(kind, context, [_walk(c, is_leaf, (*path, k), leaves) for k, c in zip(keys, children)])


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure that `tree_unflatten` takes."""
    leaves: list[tuple[tuple[Any, ...], Any]] = []
    spec = _walk(tree, is_leaf, (), leaves)
    return [leaf for _, leaf in leaves], spec


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """The leaves, each with the path to it, and the structure."""
    leaves: list[tuple[tuple[Any, ...], Any]] = []
    spec = _walk(tree, is_leaf, (), leaves)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a structure with other leaves.

    Raises:
        ValueError: their number is another one.
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(given)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    return _made(iter(given), treespec)


def _made(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_made(leaves, each) for each in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_flatten(tree, is_leaf)[0])


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure without the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with what a function makes of each leaf, and of the parts of other trees that stand in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[_like(spec, rest) for rest in rests]]
    return tree_unflatten([func(*each) for each in zip(*columns, strict=True)], spec)


def _like(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """What stands in a tree where a structure has leaves."""
    if spec.type is None:
        return [tree]
    kind = _kind(tree, None)
    if kind is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, _ = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    return [leaf for child, part in zip(spec.children_specs, children) for leaf in _like(child, part)]


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Call a function of each leaf; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """As `tree_map`, of a function that takes the path to the leaf first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [_like(spec, rest) for rest in rests]
    paths, values = [path for path, _ in leaves], [leaf for _, leaf in leaves]
    return tree_unflatten([func(*each) for each in zip(paths, values, *columns, strict=True)], spec)


def _predicate(type_or_types_or_pred: Any) -> Callable[[Any], bool]:
    if isinstance(type_or_types_or_pred, (type, tuple)):
        return lambda leaf: isinstance(leaf, type_or_types_or_pred)
    found: Callable[[Any], bool] = type_or_types_or_pred
    return found


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Any], Any]:
    """A decorator: the function of leaves of a type, or for which a predicate is true; others stay."""
    fits = _predicate(type_or_types_or_pred)
    return lambda func: lambda leaf: func(leaf) if fits(leaf) else leaf


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[..., Any], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """As `tree_map`, for leaves of a type, or for which a predicate is true; others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if a predicate is true for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if a predicate is true for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))
