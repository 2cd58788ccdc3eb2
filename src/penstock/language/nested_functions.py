"""Functions of arrays, maps and JSON texts."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import TypeFault
from penstock.language import coercion, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.call_arguments import (
    anything,
    array,
    at_most,
    condition,
    constant_string,
    map_,
    string,
    untyped,
    whole,
    words_of,
)
from penstock.language.places import Misfit
from penstock.language.typed_calls import Build
from penstock.model import BIGINT, BOOLEAN, INT, STRING, VOID, Call, Expression, Literal, Type

MOST_COPIES = 10_000
"""The most elements that ARRAY_REPEAT may be asked for."""
_STRINGS = Type("ARRAY", element=STRING)


def element_of(type_: Type) -> Type:
    """The type of the elements of an array, or of the values of a map."""
    return type_.element or VOID


def _compared(function: str, type_: Type | None = None) -> Build:
    """A call that looks for equal elements: of type ``type_``, or of the first argument's."""

    def build(args: tuple[Expression, ...]) -> Expression:
        _check_comparable(args)
        return Call(function, args, type_ or args[0].type)

    return build


def _check_comparable(args: tuple[Expression, ...]) -> None:
    for arg in args:
        if coercion.holds_map(arg.type):
            raise Misfit(TypeFault, f"{coercion.article(arg.type)} cannot be compared")


def _with_element(build: Build) -> Build:
    """An array and a value, both brought to their common type."""

    def brought(args: tuple[Expression, ...]) -> Expression:
        items, value = args
        if isinstance(value, Literal) and value.value is None:
            return build((items, Literal(None, element_of(items.type))))
        constant = coercion.converted(value, element_of(items.type))
        if constant is not None:
            return build((items, constant))
        type_ = coercion.common(element_of(items.type), value.type)
        if type_ is None:
            message = f"the elements are {element_of(items.type)}, not {value.type}"
            raise Misfit(TypeFault, message, "CAST one of them")
        return build((coercion.cast(items, Type("ARRAY", element=type_)),
                      coercion.cast(value, type_)))

    return brought


def _with_array(build: Build) -> Build:
    """Arrays, brought to their common type."""
    return lambda args: build(coercion.unify(args, "the arrays"))


def _extreme(function: str) -> Build:
    return lambda args: _compared(function, element_of(args[0].type))(args)


def _element_at(args: tuple[Expression, ...]) -> Expression:
    """ELEMENT_AT of an array counts from 1, or from -1 backwards; of a map it takes a key."""
    base, key = args
    if base.type.name == "ARRAY":
        if isinstance(key, Literal) and key.value == 0:
            raise Misfit(TypeFault, "ELEMENT_AT counts from 1, or from -1 backwards")
        return Call("element_at", (base, whole(key)), element_of(base.type))
    return Call("element", (map_(base), typed_calls.key_of(base.type, key)), element_of(base.type))


def _contains_key(args: tuple[Expression, ...]) -> Expression:
    return Call("map_contains_key", (args[0], typed_calls.key_of(args[0].type, args[1])), BOOLEAN)


def _size(args: tuple[Expression, ...]) -> Expression:
    if args[0].type.name not in ("ARRAY", "MAP"):
        message = f"expected an ARRAY or a MAP, not {coercion.article(args[0].type)}"
        hint = "LENGTH counts the characters of a STRING" if args[0].type == STRING else ""
        raise Misfit(TypeFault, message, hint)
    return Call("size", args, INT)


def _joined(args: tuple[Expression, ...]) -> Expression:
    """ARRAY_JOIN of elements that can be written out."""
    items = args[0]
    string(Call("element_at", (items, Literal(1, INT)), element_of(items.type)))  # or a fault
    return Call("array_join", (coercion.cast(items, _STRINGS), *args[1:]), STRING)


def _flattened(args: tuple[Expression, ...]) -> Expression:
    inner = element_of(args[0].type)
    if inner.name != "ARRAY":
        raise Misfit(TypeFault, f"FLATTEN takes arrays of arrays, not {args[0].type}")
    return Call("flatten", args, inner)


def _reversed(args: tuple[Expression, ...]) -> Expression:
    if args[0].type.name == "ARRAY":
        return Call("reverse", args, args[0].type)
    return Call("reverse", (string(args[0]),), STRING)


def _slice(args: tuple[Expression, ...]) -> Expression:
    return Call("slice", args, args[0].type)


def _sorted(args: tuple[Expression, ...]) -> Expression:
    """SORT_ARRAY: NULL comes first going up, and last going down."""
    ascending = args[1] if len(args) > 1 else Literal(True, BOOLEAN)
    if not isinstance(ascending, Literal) or not isinstance(ascending.value, bool):
        raise Misfit(TypeFault, "SORT_ARRAY takes TRUE for upwards or FALSE for downwards")
    _check_comparable(args[:1])
    return Call("sort_array", (args[0], ascending), args[0].type)


def _keys(function: str, part: Callable[[Type], Type]) -> Build:
    return lambda args: Call(function, args, Type("ARRAY", element=part(args[0].type)))


def _key_type(type_: Type) -> Type:
    return type_.key or VOID


def _repeated(args: tuple[Expression, ...]) -> Expression:
    return Call("array_repeat", args, Type("ARRAY", element=args[0].type))


def _map(args: tuple[Expression, ...]) -> Expression:
    """MAP(key, value, ...) with constant keys: two equal ones would stop Spark."""
    if len(args) % 2:
        raise Misfit(TypeFault, "MAP takes keys and values in turn")
    keys, values = (coercion.unify(args[k::2], f"the {what} of MAP")
                    for k, what in ((0, "keys"), (1, "values")))
    known = [key.value for key in keys if isinstance(key, Literal)]
    if len(known) < len(keys) or None in known or len(set(known)) < len(known):
        raise Misfit(TypeFault, "the keys of MAP are constants, each once and none NULL")
    pairs = tuple(x for pair in zip(keys, map(anything, values), strict=True) for x in pair)
    return Call("map", pairs, Type("MAP", key=keys[0].type, element=pairs[1].type))


def _json_path(args: tuple[Expression, ...]) -> Expression:
    path = words_of(args[1])
    if not path.startswith("$"):
        hint = f"write '$.{path}'" if path.isidentifier() else "write '$.name'"
        raise Misfit(TypeFault, "a path into JSON begins with $", hint)
    return Call("get_json_object", args, STRING)


def _to_json(args: tuple[Expression, ...]) -> Expression:
    if args[0].type.name not in ("ARRAY", "MAP", "STRUCT"):
        message = f"expected an ARRAY, MAP or STRUCT, not {coercion.article(args[0].type)}"
        raise Misfit(TypeFault, message, "NAMED_STRUCT('name', x) makes one")
    return Call("to_json", args, STRING)


_ARRAYS = (array, array)
_BOTH = (array, untyped)

NESTED: dict[str, Admitted[Expression]] = {
    "ARRAY": Admitted((untyped,), typed_calls.array_of, 1, None),
    "ARRAYS_OVERLAP": Admitted(
        _ARRAYS, _with_array(_compared("arrays_overlap", BOOLEAN)), 2, 2
    ),
    "ARRAY_APPEND": Admitted(_BOTH, _with_element(typed_calls.like_first("array_append")), 2, 2),
    "ARRAY_COMPACT": Admitted((array,), typed_calls.like_first("array_compact"), 1, 1),
    "ARRAY_CONTAINS": Admitted(
        _BOTH, _with_element(_compared("array_contains", BOOLEAN)), 2, 2
    ),
    "ARRAY_DISTINCT": Admitted((array,), _compared("array_distinct"), 1, 1),
    "ARRAY_EXCEPT": Admitted(_ARRAYS, _with_array(_compared("array_except")), 2, 2),
    "ARRAY_INTERSECT": Admitted(_ARRAYS, _with_array(_compared("array_intersect")), 2, 2),
    "ARRAY_JOIN": Admitted((array, constant_string, constant_string), _joined, 2, 3),
    "ARRAY_MAX": Admitted((array,), _extreme("array_max"), 1, 1),
    "ARRAY_MIN": Admitted((array,), _extreme("array_min"), 1, 1),
    "ARRAY_POSITION": Admitted(
        _BOTH, _with_element(_compared("array_position", BIGINT)), 2, 2
    ),
    "ARRAY_PREPEND": Admitted(_BOTH, _with_element(typed_calls.like_first("array_prepend")), 2, 2),
    "ARRAY_REMOVE": Admitted(_BOTH, _with_element(_compared("array_remove")), 2, 2),
    "ARRAY_REPEAT": Admitted((anything, at_most(MOST_COPIES)), _repeated, 2, 2),
    "ARRAY_SORT": Admitted((array,), _compared("array_sort"), 1, 1),
    "ARRAY_UNION": Admitted(_ARRAYS, _with_array(_compared("array_union")), 2, 2),
    "ELEMENT_AT": Admitted((untyped,), _element_at, 2, 2),
    "FLATTEN": Admitted((array,), _flattened, 1, 1),
    "FROM_JSON": Admitted((string, constant_string), typed_calls.from_json, 2, 2),
    "GET_JSON_OBJECT": Admitted((string, constant_string), _json_path, 2, 2),
    "JSON_ARRAY_LENGTH": Admitted((string,), typed_calls.gives("json_array_length", INT), 1, 1),
    "JSON_OBJECT_KEYS": Admitted((string,), typed_calls.gives("json_object_keys", _STRINGS), 1, 1),
    "MAP": Admitted((untyped,), _map, 2, None),
    "MAP_CONTAINS_KEY": Admitted((map_, untyped), _contains_key, 2, 2),
    "MAP_KEYS": Admitted((map_,), _keys("map_keys", _key_type), 1, 1),
    "MAP_VALUES": Admitted((map_,), _keys("map_values", element_of), 1, 1),
    "NAMED_STRUCT": Admitted((untyped,), typed_calls.named_struct, 2, None),
    "REVERSE": Admitted((untyped,), _reversed, 1, 1),
    "SIZE": Admitted((untyped,), _size, 1, 1),
    "SLICE": Admitted((array, whole, whole), _slice, 3, 3),
    "SORT_ARRAY": Admitted((array, condition), _sorted, 1, 2),
    "TO_JSON": Admitted((untyped,), _to_json, 1, 1),
}
"""Every function of arrays, maps and JSON, under its first name."""
