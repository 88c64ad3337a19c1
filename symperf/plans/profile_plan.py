"""What a training software chooses where a plan does not say: the table [plan] of its profile, put into fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from .plan_fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ..systems.software import Software


def defaults_under(software: Software, fields: Mapping[str, Any], given: Container[str]) -> dict[str, Any]:
    """The fields that a software sets where nothing else does.

    Args:
        software: whose profile has a table [plan].
        fields: every field of the plan.
        given: names of those that are given, which stay.

    Raises:
        InputError: the profile names no field, or a value that its field does not take.
    """
    found: dict[str, Any] = {}
    for name, default in software.plan.items():
        where = f"{software.name}: plan.{name}"
        if name not in FIELDS:
            raise InputError(f"{where}: unknown field{nearest(name, FIELDS)}")
        if default.needs and (default.needs not in FIELDS or FIELDS[default.needs].kind != "degree"):
            raise InputError(f"{where}: needs: found {quote(default.needs)}, expected a degree, such as tp")
        if name in given or (default.needs and fields[default.needs] == 1):
            continue
        same = FIELDS[name].numeric and isinstance(default.value, str) and default.value in FIELDS
        try:
            found[name] = FIELDS[name].check(fields[default.value] if same else default.value, training=True)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return found
