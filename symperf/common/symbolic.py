"""Symbols of closed forms replaced throughout what holds them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar, cast

import sympy

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = TypeVar("Value")


def replace_symbols(value: Value, forms: Mapping[Any, Any]) -> Value:
    """A value with symbols replaced in every expression of it: in tuples, lists, dictionaries' values and dataclasses.

    A dataclass that stands at several places stays one object.
    """
    known: dict[int, Any] = {}
    table = dict(forms)

    def changed(value: Any) -> Any:
        if isinstance(value, sympy.Basic):
            return value.xreplace(table)
        if isinstance(value, tuple | list):
            return type(value)(changed(each) for each in value)
        if isinstance(value, dict):
            return {key: changed(each) for key, each in value.items()}
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        if id(value) not in known:
            fields = {each.name: changed(getattr(value, each.name)) for each in dataclasses.fields(value)}
            known[id(value)] = dataclasses.replace(value, **fields)
        return known[id(value)]

    return cast("Value", changed(value))
