"""Single values among the axes of a sweep: each is put where it belongs, and holds everywhere."""

from __future__ import annotations

from typing import Any

from ..common.errors import InputError, nearest
from ..plans.plan import NUMBERS
from ..train.inputs import TRAINED_SIZES
from .axes import CHOICES, NUMERIC, WHOLE, choice, one
from .cells import Base


def fix_value(
    base: Base, name: str, value: Any, plan: dict[str, Any], work: dict[str, int], values: dict[str, Any]
) -> Base:
    """Put a single value where it belongs; the base with the model or system changed if it is one."""
    where = f"set {name}"
    if name in CHOICES:
        chosen = choice(name, value, where)
        if name == "model":
            return Base(chosen, base.system, {}, {}, {})
        if name == "system":
            return Base(base.model, chosen, {}, {}, {})
        plan[name] = chosen
    elif name in NUMBERS and value is None and NUMBERS[name].optional:
        plan[name] = None
    elif name in NUMERIC:
        checked = one(name, value, where)
        target: dict[str, Any] = plan if name in NUMBERS else work if name in ("batch", "sequence") else values
        target[name] = int(checked) if name in (*WHOLE, *TRAINED_SIZES) else checked
    else:
        raise InputError(f"axis {name}: no such symbol{nearest(name, [*NUMERIC, *CHOICES])}")
    return base
