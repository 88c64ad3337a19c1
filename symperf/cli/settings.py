"""What a command line asks of a run: `NAME=VALUE` settings, the plan, and how its answers are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..common.errors import InputError, quote
from ..common.numbers import numeral, plain_value
from ..common.table import show_lines
from ..plans.plan import FIELDS, Plan, positive_integer
from .output import console, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from ..infer.adapter_slots import Adapters
    from ..models.model import Model
    from ..runs.full_run import FullRun


class Answers(Protocol):
    """Answers beside those of a run."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        ...

    def lines(self) -> list[str]:
        """In words."""
        ...


def split_settings(settings: Iterable[str], flag: str, expected: str, *, once: str = "") -> dict[str, str]:
    """The texts of `NAME=VALUE` settings by name, hyphens as underscores.

    Args:
        settings: of a flag.
        flag: its name, for error lines.
        expected: what a setting should be.
        once: how to say several values, for the line of a name that comes twice.

    Raises:
        InputError: a setting without `=`, or a name given twice.
    """
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name, text = name.strip().replace("-", "_"), text.strip()
        if not equals or not name or not text:
            raise InputError(f"{flag}: found {quote(setting)}, expected {expected}")
        if name in found:
            raise InputError(f"{flag}: {name} is given twice{once}")
        found[name] = text
    return found


def parse_values(settings: list[str]) -> dict[str, Any]:
    """The values of `--set NAME=VALUE`: whole numbers, numbers, or text with a unit.

    Raises:
        InputError: a setting without `=`, or a name given twice.

    >>> parse_values(["memory_bandwidth=4.8e12", "tp=8", "launch_latency=3 us"])
    {'memory_bandwidth': 4800000000000.0, 'tp': 8, 'launch_latency': '3 us'}
    """
    return {name: plain_value(text) for name, text in split_settings(settings, "--set", "NAME=VALUE").items()}


def run_values(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `--set`, and of flags that are symbols, which it overrides.

    Raises:
        InputError: a setting without `=`, or a name given twice.
    """
    part = getattr(options, "memory_utilization", None)
    return ({} if part is None else {"memory_utilization": part}) | parse_values(options.set)


def longest_of(options: argparse.Namespace) -> int:
    """The sequences of the longest context that is asked for.

    Raises:
        InputError: fewer than one.
    """
    return 1 if options.longest is None else positive_integer("longest", options.longest)


def field_value(name: str, text: str) -> Any:
    """The value that a text gives a field of a plan; `none` is a mode of recomputation, and else says that it has none.

    >>> field_value("expert_tp", "none"), field_value("recompute", "none"), field_value("zero", "1")
    (None, 'none', 1)
    """
    return None if text.lower() in ("none", "null") and name != "recompute" else plain_value(text)


def parse_offload(text: str | None, values: dict[str, Any]) -> str | None:
    """What `--offload` names, of whose parts `NAME=F` are added to the values of symbols.

    Raises:
        InputError: a part that is no fraction, or one that is given twice.

    >>> values = {}
    >>> parse_offload("weights=0.5,cache", values), values
    ('weights,cache', {'offloaded_weights': 0.5})
    """
    names = []
    for each in ("" if text is None else text).split(","):
        name, equals, part = each.partition("=")
        names.append(name.strip())
        if not equals:
            continue
        number, symbol = numeral(part.strip(), float), f"offloaded_{name.strip()}"
        if number is None or not 0 <= number <= 1:
            raise InputError(f"--offload {name}: found {quote(part)}, expected a fraction from 0 to 1")
        if symbol in values:
            raise InputError(f"--offload: the part of {name} is given twice")
        values[symbol] = number
    return text if text is None else ",".join(names)


def lora_of(options: argparse.Namespace, model: Model) -> Adapters | None:
    """The adapters of requests that the options ask for.

    Raises:
        InputError: a rank above the width, or a layer that the model has not.
    """
    from ..infer.adapter_slots import adapters_of

    rank, number, targets = (getattr(options, f"lora_{name}", None) for name in ("rank", "adapters", "targets"))
    return adapters_of(model, rank, number, targets)


def plan_of(
    options: argparse.Namespace, values: dict[str, Any], *, training: bool = False, stack: str | None = None
) -> Plan:
    """The plan of flags, and of the `values` of its fields, which are taken out.

    Flags of adapters of requests are no fields of a plan. What neither gives is as the profile of a training software,
    `stack`, chooses it.

    Raises:
        InputError: a value out of range.
    """
    own = {name for name in Plan.names() if FIELDS[name].adapters and hasattr(options, "lora_adapters")}
    fields = {name: getattr(options, name) for name in Plan.names() if name not in own}
    fields["offload"] = parse_offload(fields["offload"], values)
    told = {name: values.pop(name) for name in list(values) if name in fields}
    fields |= told
    for name in ("precision",) if training else ():
        FIELDS[name].check(fields[name], training=True)
    if stack is None:
        return Plan(**fields)
    return Plan.under(stack, **{name: fields[name] for name in fields if name in told or name in options.given})


def print_run(
    answer: FullRun,
    report: ModuleType,
    options: argparse.Namespace,
    *asked: Any,
    above: Mapping[str, Answers | None] | None = None,
    beside: Mapping[str, Answers | None] | None = None,
) -> None:
    """Print what a kind of run's report says, what the run spends, and how sure it is where that is asked.

    Args:
        answer: the run.
        report: of its kind.
        options: of the command line.
        asked: what else the report takes.
        above: answers by key of which the run is only a part, told before it; None where they are not asked for.
        beside: further answers by key, which are none of the run's own, told behind it.
    """
    from ..report import interval, spending

    if options.json:
        further = {**(above or {}), **(beside or {})}
        write_json(
            report.as_json(answer, *asked)
            | answer.spending_json(options.grid)
            | {name: None if each is None else each.to_dict() for name, each in further.items()}
            | {"interval": interval.as_json(answer) if options.interval else None}
        )
        return
    with console() as out:
        for each in (above or {}).values():
            show_lines(out, () if each is None else each.lines())
        report.show(answer, out, *asked)
        for each in (beside or {}).values():
            show_lines(out, () if each is None else each.lines())
        spending.show(answer, options, out)
        show_lines(out, interval.lines(answer) if options.interval else ())
