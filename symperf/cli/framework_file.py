"""`symperf train --from FILE`: options that a framework's file gives, beneath the flags of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..models.model import Model, make_model
from ..plans.plan import Plan
from .settings import parse_values

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ..frameworks.settings import FrameworkSettings


def fill_in(options: argparse.Namespace) -> FrameworkSettings | None:
    """Give the options what `--from` says, unless a flag says it; None where it is not asked for.

    Raises:
        InputError: the file cannot be read as a framework's, or does not say enough.
    """
    if options.framework_file is None:
        if options.devices is not None:
            raise InputError("train: found --devices, which goes with --from; the plan has tp x pp x cp x dp of them")
        return None
    if options.system is None:
        raise InputError("train: the following arguments are required: -s/--system")
    from ..frameworks.read import read_framework

    found = read_framework(options.framework_file, ignore_keys=options.ignore_key, model=options.model is not None)
    options.ignore_key = [key for key in options.ignore_key if not found.ignores(key)]
    if options.model is None and found.model is None:
        raise InputError(f"train: {found.label} names no model that is known; name one before --from")
    if options.model is None:
        options.model = found.model
    asked = parse_values(options.set)
    given = {name: getattr(options, name) for name in (*Plan.names(), "batch", "devices") if name in options.given}
    given |= {name: asked[name] for name in (*Plan.names(), "batch") if name in asked}
    fields, batch = found.settle(given, model_asked(options).sizes["num_layers"])
    beneath = fields | {"batch": batch, "sequence": found.sequence, "stack": found.stack} | dict(found.flags)
    for name, value in beneath.items():
        if name not in options.given and value is not None:
            setattr(options, name, value)
    options.set += [f"{name}={value}" for name, value in found.values.items() if name not in asked]
    return found


def model_asked(options: argparse.Namespace) -> Model:
    """The model that is named, or that a file describes.

    Raises:
        InputError: it cannot be read.
    """
    if isinstance(options.model, dict):
        label = f"the model of {quote(options.framework_file)}"
        return make_model(options.framework_file, label, options.model, label, tuple(options.ignore_key))
    return Model.load(options.model, options.ignore_key)


def require(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Refuse a question without a model, a system or a batch, wherever they might have come from.

    Raises:
        InputError: naming what is missing.
    """
    needed = {"model": options.model, "-s/--system": options.system, "--batch": values.get("batch", options.batch)}
    if missing := [name for name, value in needed.items() if value is None]:
        raise InputError(f"train: the following arguments are required: {', '.join(missing)}")
