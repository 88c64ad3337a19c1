"""Questions of a search for inference, checked; and constraints that contradict each other, named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, nearest, quote
from ...infer.formats import KV_BYTES
from ...infer.memory_rule import MEMORY_LIMITS
from ...infer.rules import require_decoder
from ...plans.plan import FIELDS as PLAN
from ...plans.plan import positive_integer
from ...serve.request import ServingRequest
from ...serve.speculation import checked_acceptance
from ...spending.prices import rent_of
from ...systems.quantities import check_number
from ..request import check_mapping
from .records import JOULES
from .space import FIELDS, LAYOUT, LIMITED
from .spent import check_priced, energy_basis, rented

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .space import InferenceQuestion

ORDERS = ("throughput", "latency", "tokens_per_dollar", "cost", "tokens_per_joule", "joules")


def check_fields(given: Mapping[str, Any], *, batch: bool) -> dict[str, tuple[Any, ...]]:
    """Values by field, each checked.

    Raises:
        InputError: an unknown field, with the nearest, no value, or one that no plan has.
    """
    found = {}
    for name, value in check_mapping("require", given).items():
        _require_known("require", name, FIELDS, batch=batch)
        several = hasattr(value, "__iter__") and not isinstance(value, str | bytes)
        values = list(value) if several else [value]
        if not values:
            raise InputError(f"require: {name} has no value, expected one or more")
        found[name] = tuple(dict.fromkeys(_check(name, each) for each in values))
    return found


def _require_known(where: str, name: str, names: Iterable[str], *, batch: bool) -> None:
    if name not in names:
        raise InputError(f"{where}: no choice {quote(name)} in a search for inference{nearest(name, names)}")
    if name in ("chunk", "max_num_seqs", "draft_length") and batch:
        raise InputError(f"{where}: {name} means something for the largest load only, found a batch")
    if name in ("micro_batch", "batch") and not batch:
        raise InputError(f"{where}: {name} means something with a batch only, found none: requests arrive at random")


def _check(name: str, value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if name in LIMITED:
        return positive_integer(name, value)
    if name in ("max_num_seqs", "draft_length"):
        return positive_integer(name, value, lowest=0)
    if name == "memory_utilization":
        return check_number(value, MEMORY_LIMITS[name], name)
    if name == "kv_precision":
        if not isinstance(value, str) or value not in KV_BYTES:
            raise InputError(f"kv_precision: found {quote(value)}, expected {' or '.join(KV_BYTES)}")
        return value
    return PLAN[name].check(value)


def check_most(given: Mapping[str, Any], *, batch: bool) -> dict[str, int]:
    """Largest values.

    Raises:
        InputError: of something that has none, or no whole number from 1.
    """
    for name in check_mapping("limits", given):
        _require_known(f"max_{name}", name, LIMITED, batch=batch)
    return {name: positive_integer(f"max_{name}", value) for name, value in given.items()}


def check_batch(given: Any) -> tuple[int, ...]:
    """The batches that are asked for, in rising order; none where none is.

    Raises:
        InputError: no whole number.
    """
    if given is None:
        return ()
    values = list(given) if hasattr(given, "__iter__") and not isinstance(given, str | bytes) else [given]
    if not values:
        raise InputError("batch: found none, expected a whole number or several")
    return tuple(sorted({positive_integer("batch", value) for value in values}))


def check_order(by: str | None, question: InferenceQuestion) -> str:
    """What the best plan is best at: that which is asked for, or the least time of a batch, or the largest load.

    Raises:
        InputError: an unknown order, or one that the question does not allow.
    """
    name = by or ("latency" if question.batch else "throughput")
    if name not in ORDERS:
        raise InputError(f"by: found {quote(name)}, expected {' or '.join(ORDERS)}{nearest(name, ORDERS)}")
    if name == "latency" and not question.batch:
        raise InputError("by: latency needs a batch, found none: a load within limits of latency is as large as it can")
    if name == "cost":
        check_priced(question)
    if name in JOULES or (name == "cost" and not rented(question)):
        require_undrafted(question, "by", "another order")
    if name in JOULES:
        energy_basis(question)
    if name == "tokens_per_dollar" and rent_of(question.base.system) is None:
        raise InputError(f"by: {name} needs price_per_hour, which system {question.system.name} does not have; set it")
    return name


def require_undrafted(question: InferenceQuestion, where: str, instead: str) -> None:
    """Refuse to count joules of drafted tokens.

    Args:
        question: what is searched.
        where: joules are asked for.
        instead: what could be asked for.

    Raises:
        InputError: something drafts.
    """
    if question.draft is not None:
        raise InputError(f"{where}: joules are not told of drafted tokens, expected no draft or {instead}")


def _check_draft(question: InferenceQuestion, *, disaggregate: bool) -> None:
    """Refuse drafted tokens where nothing drafts, and questions that are not answered with them.

    Raises:
        InputError: naming what does not go together.
    """
    if question.draft is None:
        told = {"draft_length": question.required.get("draft_length"), "acceptance": question.acceptance}
        for name, given in told.items():
            if given is not None and given != (0,):
                raise InputError(f"{name}: means something with a draft model only, found none (draft or speculate)")
        return
    checked_acceptance(question.acceptance)
    others = {"batch": question.batch, "disaggregate": disaggregate, "emit": question.software.name}
    for name, found in others.items():
        if found:
            raise InputError(f"{name}: found together with drafted tokens, expected a search for the largest load only")


def check_question(question: InferenceQuestion, *, disaggregate: bool, front: bool = False) -> None:
    """Refuse what no plan can answer.

    Raises:
        InputError: bad figures; constraints that contradict each other.
    """
    ServingRequest(question.prompt, question.generate, question.ttft, question.tpot)  # checks them
    _check_draft(question, disaggregate=disaggregate)
    if not question.batch:
        require_decoder(question.model)
        if question.ttft is None and question.tpot is None and not front:
            raise InputError("search: found neither a batch nor a limit, expected batch, or ttft or tpot, or both")
    elif disaggregate:
        raise InputError("disaggregate: is of requests that arrive at random, found a batch; expected none")
    software = question.software
    for name, values in question.candidates.items():
        if not values and name not in question.limits:
            expected = " or ".join(software.caches)
            raise InputError(f"{name}: {software.name} has no such format, expected {expected}")
        if not values:
            asked = " or ".join(map(str, question.required.get(name, ())))
            raise InputError(
                f"constraints contradict each other: {name} = {asked}, and max_{name} = {question.limits[name]}"
            )
    for precision in question.candidates["precision"]:
        one = {"precision": precision, "batch": 1}
        _ = question.inference(one) if question.batch else question.serving(one)
    if question.generate == 1 and (question.tpot is not None or disaggregate):
        name = "disaggregate" if disaggregate else "tpot"
        raise InputError(f"{name}: means nothing with generate = 1, where no later token is decoded")
    if not disaggregate and next(question.choices(), None) is None:
        given = [f"{n} = {' or '.join(map(str, question.required[n]))}" for n in LAYOUT if n in question.required]
        given += [f"max_{name} = {most}" for name, most in question.limits.items() if name in LAYOUT]
        raise InputError(
            f"constraints contradict each other: with {', '.join(given)} no tp x pp x dp is {question.devices} devices"
        )
