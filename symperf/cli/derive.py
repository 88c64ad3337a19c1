"""`symperf derive`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.collecting import collection_paused
from ..common.errors import InputError, nearest, quote
from ..models.model import Model
from ..plans.plan import Plan
from ..runs.training_run import Run
from ..systems.system import System
from .output import write, write_file, write_json
from .settings import parse_values

if TYPE_CHECKING:
    import argparse

    from ..derive import Derivation
    from ..evaluation.base_run import BaseRun

FORMATS = ("latex", "fragment", "unicode", "python", "c", "js")
SUFFIXES = {".tex": "latex", ".txt": "unicode", ".py": "python", ".c": "c", ".js": "js", ".mjs": "js"}
SPAN = 16
"""Without --from and --to a symbol is followed from its value over this to its value times this."""


def run(options: argparse.Namespace) -> int:
    """Print the closed form of a quantity."""
    with collection_paused():  # an eighth of the time
        return _answer(options)


def _answer(options: argparse.Namespace) -> int:
    from ..derive import derive

    form = _format(options)
    answer = build_run(options)
    derivation = derive(
        answer,
        options.of,
        term=options.term,
        free=[name.replace("-", "_") for name in options.free],
        below=options.below,
        fold=[name.replace("-", "_") for name in options.fold] or None,
    )
    regimes = _regimes(answer, options)
    if options.json:
        from ..derive.output import as_json

        write_json(as_json(derivation) | {"regimes": None if regimes is None else regimes.to_dict()})
        return 0
    text = _text(derivation, form, options)
    if regimes is not None:
        text += f"\n{regimes}\n"
    _deliver(text, options.output)
    return 0


def build_run(options: argparse.Namespace) -> BaseRun:
    """The run that the options describe.

    Raises:
        InputError: a kind of run that there is not, or a flag that it needs is missing.
    """
    if options.what not in RUNS:
        raise InputError(
            f"derive: found {quote(options.what)}, expected {' or '.join(RUNS)} before the model"
            f"{nearest(options.what, RUNS)}"
        )
    found: BaseRun = RUNS[options.what](options)
    return found


def _training(options: argparse.Namespace) -> BaseRun:
    plan, work, values = _parts(
        options, "train", ("batch", "sequence"), ("prompt", "generate", "stack", "kv_precision")
    )
    return Run(Model.load(options.model), System.load(options.system), plan, **work, values=values)


def _inference(options: argparse.Namespace) -> BaseRun:
    from ..runs.inference_run import InferenceRun

    plan, work, values = _parts(options, "infer", ("batch", "prompt", "generate"), ("sequence",))
    more = {name: getattr(options, name) for name in ("stack", "kv_precision") if getattr(options, name) is not None}
    model, system = Model.load(options.model), System.load(options.system)
    return InferenceRun(model, system, plan, **work, **more, values=values)


def _parts(
    options: argparse.Namespace, kind: str, needed: tuple[str, ...], others: tuple[str, ...]
) -> tuple[Plan, dict[str, Any], dict[str, Any]]:
    """The plan, the work and the values of other symbols; `--set` overrides flags."""
    values = parse_values(options.set)
    fields = {name: getattr(options, name) for name in Plan.names() if getattr(options, name, None) is not None}
    fields |= {name: values.pop(name) for name in list(values) if name in Plan.names()}
    work = {name: values.pop(name, getattr(options, name)) for name in needed}
    for name, value in work.items():
        if value is None:
            raise InputError(f"derive {kind}: --{name} is needed")
    for name in others:
        if getattr(options, name) is not None:
            raise InputError(f"derive {kind}: --{name.replace('_', '-')} is of the other kind of run")
    return Plan(**fields), work, values


RUNS: dict[str, Any] = {"train": _training, "infer": _inference}
"""How each kind of run is made from the options."""


def _format(options: argparse.Namespace) -> str:
    """The format asked for, or that of the file's name."""
    asked = [name for name in FORMATS if getattr(options, name)]
    if options.json and (asked or options.output):
        raise InputError(f"derive: --json prints one object, without {f'--{asked[0]}' if asked else '--output'}")
    if (options.from_ is None) != (options.to is None):
        raise InputError("derive: --from and --to go together")
    if options.wrt is None and options.from_ is not None:
        raise InputError("derive: --from and --to need --wrt NAME")
    if asked:
        if options.wrt is not None and asked[0] != "unicode":
            raise InputError(f"derive: --wrt prints text, without --{asked[0]}")
        return asked[0]
    if options.output is None:
        return "unicode"
    suffix = Path(options.output).suffix
    if suffix not in SUFFIXES:
        raise InputError(
            f"derive: --output {quote(options.output)}: expected a name that ends in {' or '.join(SUFFIXES)}, "
            "or one of --latex, --fragment, --unicode, --python, --c, --js"
        )
    return SUFFIXES[suffix]


def _text(derivation: Derivation, form: str, options: argparse.Namespace) -> str:
    if form == "unicode":
        from ..derive.output import as_text as as_text

        terminal = sys.stdout is not None and sys.stdout.isatty() and options.output is None
        width = max(shutil.get_terminal_size().columns, 40) if terminal else 100
        return as_text(derivation, width, whole=options.whole, every=options.conditions == "all") + "\n"
    made = {
        "latex": derivation.latex,
        "fragment": derivation.fragment,
        "python": derivation.python,
        "c": derivation.c,
        "js": derivation.javascript,
    }
    text = made[form]()
    return text if text.endswith("\n") else f"{text}\n"


def _regimes(answer: BaseRun, options: argparse.Namespace) -> Any:
    if options.wrt is None:
        return None
    from ..analysis.regimes import regimes

    name = options.wrt.replace("-", "_")
    inputs = answer.compiled.program.inputs
    if name not in inputs:
        raise InputError(f"wrt: the run has no symbol {quote(name)}{nearest(name, inputs)}")
    if options.term is not None:
        raise InputError("derive: --wrt is of a whole quantity, without --term")
    low, high = options.from_, options.to
    if low is None:
        low, high = default_range(name, answer.bound[name][0])
    return regimes(answer, name, low, high, of=options.of)


def default_range(name: str, value: float) -> tuple[float, float]:
    """Where a symbol is followed when nothing is asked for."""
    from ..common.vocabulary import vocabulary

    if name.startswith("overlap") or name.endswith("_efficiency"):
        return ((value or 1.0) / SPAN, 1.0)
    if value <= 0:
        raise InputError(f"derive: --wrt {name} is {value:g} here, expected --from and --to as well")
    low, high = value / SPAN, value * SPAN
    whole = name in vocabulary() and float(value).is_integer() and vocabulary()[name].unit == "1"
    return (max(1.0, round(low)), max(2.0, round(high))) if whole else (low, high)


def _deliver(text: str, output: str | None) -> None:
    if output is None:
        write(text)
        return
    write_file(output, text, "derive: --output {}: cannot be written")
