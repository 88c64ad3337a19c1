"""`symperf derive`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.collecting import collection_paused
from ..common.errors import InputError, nearest, quote
from ..common.outputs import write_file
from .output import columns, write, write_json
from .plots import check_plot, write_plot
from .question import build_run

if TYPE_CHECKING:
    import argparse

    from ..derive import Derivation
    from ..evaluation.base_run import BaseRun

FORMATS = ("latex", "fragment", "unicode", "python", "c", "js")
SUFFIXES = {".tex": "latex", ".txt": "unicode", ".py": "python", ".c": "c", ".js": "js", ".mjs": "js"}


def run(options: argparse.Namespace) -> int:
    """Print the closed form of a quantity."""
    with collection_paused():  # an eighth of the time
        return _answer(options)


def _answer(options: argparse.Namespace) -> int:
    from ..derive import derive

    form = _format(options)
    check_plot(options)
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
    write_plot(options, lambda: derivation)
    if options.json:
        from ..derive.output import as_json

        write_json(as_json(derivation) | {"regimes": None if regimes is None else regimes.to_dict()})
        return 0
    text = _text(derivation, form, options)
    if regimes is not None:
        text += f"\n{regimes.text(columns(file=options.output is not None))}\n"
    _deliver(text, options.output)
    return 0


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

        width, every = columns(file=options.output is not None), options.conditions == "all"
        return as_text(derivation, width, whole=options.whole, every=every) + "\n"
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
    from ..analysis.symbols import default_range

    name = options.wrt.replace("-", "_")
    inputs = answer.compiled.program.inputs
    if name not in inputs:
        raise InputError(f"wrt: the run has no symbol {quote(name)}{nearest(name, inputs)}")
    if options.term is not None:
        raise InputError("derive: --wrt is of a whole quantity, without --term")
    low, high = options.from_, options.to
    if low is None:
        low, high = default_range(name, answer.bound[name][0], "derive: --wrt")
    return regimes(answer, name, low, high, of=options.of)


def _deliver(text: str, output: str | None) -> None:
    if output is None:
        write(text)
        return
    write_file(output, text, "derive: --output {}: cannot be written")
