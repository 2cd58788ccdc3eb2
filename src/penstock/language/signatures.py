"""What SQL must know of a Python function, read from the text of its module: nothing is imported.

`penstock explain` and those who only read a checkpoint run none of the user's code. They find the
file of the module as Python would, and read the decorator above the function in its syntax tree.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder

_DECORATORS = {
    f"{home}.{name}": name for home in ("penstock", "penstock.functions")
    for name in ("predicate", "scalar")
}
_DEEPEST = 5
"""How many modules a name is followed through that each import it from the next."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a call in SQL is checked against."""

    returns: str
    arity: int | None
    deterministic: bool = True
    doubt: str = ""
    """Why it had to be guessed, if it had to."""


def read_signature(module: str, attribute: str, folder: str) -> Signature:
    """The function's signature; a predicate of any arity, with the doubt, where it is not plain.

    ValueError says that there is no such module.
    """
    try:
        return _signature(module, attribute, folder, 0)
    except _Unclear as unclear:
        return Signature("BOOLEAN", None, doubt=str(unclear))


def doubt_of(module: str, attribute: str, folder: str) -> str:
    """Why a callback may not be found, or nothing."""
    try:
        tree, _ = _read(module, folder)
    except (ValueError, _Unclear) as error:
        return str(error)
    known = {name for node in tree.body for name in _names(node)}
    return "" if attribute in known or "*" in known else f"{module} declares no {attribute}"


class _Unclear(Exception):
    """The text alone does not tell."""


def _signature(module: str, attribute: str, folder: str, depth: int) -> Signature:
    tree, package = _read(module, folder)
    found = [node for node in tree.body if attribute in _names(node)]
    if not found or depth > _DEEPEST:
        raise _Unclear(f"{module} does not declare {attribute} at its top level")
    node = found[-1]
    if isinstance(node, ast.FunctionDef):
        return _declared(node, _imported(tree), f"{module}:{attribute}")
    if isinstance(node, ast.ImportFrom):
        names = {alias.asname or alias.name: alias.name for alias in node.names}
        return _signature(_home(node, package), names[attribute], folder, depth + 1)
    raise _Unclear(f"{module}:{attribute} is not a plain function with a decorator")


def _declared(node: ast.FunctionDef, imported: dict[str, str], name: str) -> Signature:
    if not node.decorator_list:
        message = f"{name} is not declared with penstock.predicate or penstock.scalar"
        raise ValueError(message)
    outer, *inner = node.decorator_list
    call = outer if isinstance(outer, ast.Call) else None
    kind = _DECORATORS.get(_dotted(call.func if call else outer, imported))
    arity = None if inner else _arity(node.args)
    if kind == "predicate":
        return Signature("BOOLEAN", arity, _is_deterministic(call))
    if kind == "scalar" and call is not None:
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "returns")]
        if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
            return Signature(given[0].value, arity, _is_deterministic(call))
    raise _Unclear(f"the decorator of {name} does not say what it returns")


def _is_deterministic(decorator: ast.Call | None) -> bool:
    """Unless the decorator says ``deterministic=False``."""
    keywords = decorator.keywords if decorator is not None else []
    return not any(k.arg == "deterministic" and isinstance(k.value, ast.Constant)
                   and k.value.value is False for k in keywords)


def _arity(parameters: ast.arguments) -> int | None:
    """As `penstock.functions.PythonFunction.arity` counts."""
    if parameters.vararg is not None:
        return None
    positional = len(parameters.posonlyargs) + len(parameters.args) - len(parameters.defaults)
    named = len([default for default in parameters.kw_defaults if default is None])
    return positional + named + (parameters.kwarg is not None)


def _imported(tree: ast.Module) -> dict[str, str]:
    """What the names of a module's imports stand for."""
    meant: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            meant |= {a.asname or a.name.partition(".")[0]: a.name if a.asname
                      else a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            meant |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return meant


def _dotted(node: ast.expr, imported: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, imported)}.{node.attr}"
    return imported.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def _names(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module gives to something."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    else:
        inside = (part for part in ast.walk(node) if isinstance(part, ast.Name))
        yield from (part.id for part in inside if isinstance(part.ctx, ast.Store))


def _home(node: ast.ImportFrom, package: str) -> str:
    """The module that ``from ... import`` names, also relative to the package of its own."""
    parts = package.split(".") if node.level else []
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _read(module: str, folder: str) -> tuple[ast.Module, str]:
    """The syntax tree of a module, and the package that its relative imports start at."""
    spec = _spec(module, folder)
    source = getattr(spec.loader, "get_source", None) if spec is not None else None
    if spec is None or source is None:
        if module.partition(".")[0] in sys.builtin_module_names:
            raise _Unclear(f"{module} is part of Python itself")
        raise ValueError(f"there is no module {module} in {os.path.abspath(folder)} "
                         "or on Python's path")
    try:
        text = source(module)
        if text is None:
            raise _Unclear(f"{module} is not Python text")
        package = module if spec.submodule_search_locations else module.rpartition(".")[0]
        return ast.parse(str(text)), package
    except (SyntaxError, ImportError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {module}: {error}") from error


def _spec(module: str, folder: str) -> ModuleSpec | None:
    """Where Python would find a module; `importlib.util.find_spec` would run its packages."""
    importlib.invalidate_caches()
    path: Sequence[str] | None = [folder, *sys.path]
    spec = None
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations or []
    return spec
