"""What a table of functions holds: how many arguments, what each must be, and the typed call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.errors import TypeFault
from penstock.language.places import Misfit
from penstock.model import Expression

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Admitted(Generic[Result]):
    """A function of the language."""

    arguments: tuple[Callable[[Expression], Expression], ...]
    """What each argument must be; the last entry serves all further ones."""
    build: Callable[[tuple[Expression, ...]], Result]
    """The typed call, from arguments that are as they must be."""
    least: int
    """The fewest arguments."""
    most: int | None
    """The most arguments; None for any number."""

    def call(
        self, name: str, given: Sequence[Expression], added: Sequence[Expression] = ()
    ) -> Result:
        """The function applied to these arguments, and to what the binder adds to them."""
        if len(given) < self.least or (self.most is not None and len(given) > self.most):
            raise Misfit(TypeFault, f"{name} takes {self._count()}, not {len(given)}")
        kinds = (*self.arguments, *[self.arguments[-1]] * len(given))
        fitted = []
        for kind, argument in zip(kinds, given, strict=False):
            try:
                fitted.append(kind(argument))
            except Misfit as misfit:
                raise Misfit(misfit.kind, f"{name}: {misfit.message}", misfit.hint) from None
        return self.build((*fitted, *added))

    def _count(self) -> str:
        if self.most is None:
            return f"at least {self.least} argument{'s' if self.least != 1 else ''}"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        return f"{self.least} to {self.most} arguments"
