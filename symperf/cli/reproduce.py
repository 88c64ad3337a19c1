"""The command line that gives one plan of a search by itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ..plans.plan import FIELDS, Plan
from ..systems.software import Software

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ..plan_search.inference.records import PlanRecord
    from ..plan_search.inference.space import InferenceQuestion
    from ..plan_search.search import Answer


def command(
    found: PlanRecord, question: InferenceQuestion, options: argparse.Namespace, *, flying: float | None = None
) -> str | None:
    """The command that answers what a record tells; None of two pools, which no command has.

    Args:
        found: of a plan.
        question: that was asked.
        options: of the search.
        flying: requests in flight at all replicas; by default requests arrive at random, and the largest load is asked.
    """
    if found.pools:
        return None
    words = ["symperf", "infer" if question.batch else "serve", options.model, "-s", options.system]
    asked: dict[str, Any] = {"prompt": question.prompt, "generate": question.generate}
    asked |= {"batch": found.fields["batch"]} if question.batch else {}
    if not question.batch:
        asked |= {"ttft": question.ttft, "tpot": question.tpot} if flying is None else {"concurrency": round(flying)}
    asked |= {"stack": options.stack or str(question.stack)}
    for name, value in asked.items():
        words += [] if value is None else [_flag(name), _text(value)]
    fields = {**question.software.fixed, **found.fields}
    if fields.get("draft_length"):
        drafts = {name: getattr(options, name) for name in ("speculate", "draft")}
        accepted = options.acceptance
        drafts["acceptance"] = ",".join(map(_text, accepted)) if isinstance(accepted, tuple | list) else accepted
        words += [word for name, value in drafts.items() if value is not None for word in (_flag(name), _text(value))]
    elif "draft_length" in fields:
        del fields["draft_length"]
    for name, value in fields.items():
        if name != "batch" and value is not None and (name not in FIELDS or value != FIELDS[name].default):
            words += [_flag(name), _text(value)]
    for key in options.ignore_key:
        words += ["--ignore-key", key]
    for name, value in _set(question.values).items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def train_command(record: Mapping[str, Any], answer: Answer, options: argparse.Namespace) -> str:
    """The command that answers what a record of a search for training tells."""
    question = next(each.question for each in answer.found if each.question.devices == record["devices"])
    words = ["symperf", "train", options.model, "-s", options.system]
    words += ["--batch", str(question.batch), "--sequence", str(question.sequence)]
    words += [] if question.stack is None else ["--stack", str(question.stack)]
    profiled = () if question.stack is None else Software.load(question.stack).plan
    plan = Plan(**{name: record[name] for name in FIELDS})
    for name, field in FIELDS.items():
        value = record[name]
        if value is None and name in profiled:  # what the profile chooses is told
            value = {"expert_tp": plan.effective_expert_tp, "dropout": answer.winner.model.architecture.dropout}.get(
                name
            )
        if value is None or (value == field.default and name not in profiled):
            continue
        if isinstance(value, bool):
            words.append(_flag(name) if value else _flag(f"no_{name}"))
        else:
            words += [_flag(name), _text(value)]
    for key in options.ignore_key:
        words += ["--ignore-key", key]
    for name, value in _set(question.values).items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _set(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}
