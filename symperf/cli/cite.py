"""`symperf cite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.version import VERSION
from ..formulas.sources import KUNDU, SOURCES
from .output import write, write_json

if TYPE_CHECKING:
    import argparse

Cited = Sequence[tuple[str | None, str]]
"""Names of formulas, each with the key of its source; None where the source itself is asked for."""
SOFTWARE = f"""@software{{symperf,
  title = {{symperf: a symbolic cost-model compiler for distributed LLM training and inference}},
  author = {{{{The symperf developers}}}},
  version = {{{VERSION}}}
}}"""


def run(options: argparse.Namespace) -> int:
    """Print BibTeX: of the program and its method, of one formula, of all sources, or of a run's formulas."""
    asked = options.asked
    if asked is not None:
        if asked.verb not in RUNS:
            raise InputError(f"cite: found {quote(asked.verb)}, expected {' or '.join(RUNS)}")
        if options.name is not None or options.all:
            raise InputError(f"cite: found {'--all' if options.all else quote(options.name)} beside a run")
        _print(RUNS[asked.verb](asked), options.json or asked.json)
    elif options.all:
        if options.name is not None:
            raise InputError(f"cite: found {quote(options.name)} beside --all")
        _print(_every_formula(), options.json)
    elif options.name is not None:
        _print(_one(options.name), options.json)
    elif options.json:
        write_json({"formulas": [], "sources": {"symperf": SOFTWARE, KUNDU: SOURCES[KUNDU]}})
    else:
        write(f"{SOFTWARE}\n\n{SOURCES[KUNDU]}\n")
    return 0


def _print(found: Cited, as_json: bool) -> None:
    keys = sorted({key for _, key in found})
    if as_json:
        formulas = [{"name": name, "source": key} for name, key in found if name is not None]
        write_json({"formulas": formulas, "sources": {key: SOURCES[key] for key in keys}})
        return
    entries = []
    for key in keys:
        names = ", ".join(name for name, source in found if source == key and name is not None)
        entries.append(f"{_comment(names)}{SOURCES[key]}\n")
    write("\n".join(entries))


def _comment(names: str) -> str:
    """The names as comment lines, which BibTeX passes over."""
    import textwrap

    lines = textwrap.wrap(names, 110, break_long_words=False, break_on_hyphens=False)
    return "".join(f"% {line}\n" for line in lines)


def _one(name: str) -> Cited:
    if name in SOURCES:
        return [(None, name)]
    from ..formulas.registry import load

    known = load()
    if name not in known:
        hint = (
            nearest(name, [*known, *SOURCES, *RUNS]) or f", expected a formula, a key of a source, {' or '.join(RUNS)}"
        )
        raise InputError(f"cite: unknown formula {quote(name)}{hint}")
    return [(name, known[name].source)]


def _every_formula() -> Cited:
    from ..formulas.registry import load

    return [(formula.name, formula.source) for formula in load().values()]


def _train(options: argparse.Namespace) -> Cited:
    from ..book.used import inference_formulas, training_formulas
    from .train import ask

    asked = ask(options)
    if asked.step is None:
        return training_formulas(asked.answer.structure)
    found = {pair for run in asked.step.passes.values() for pair in training_formulas(run.structure)}
    if asked.step.generation is not None:
        found |= set(inference_formulas(asked.step.generation.run.structure))
    return sorted(found)


def _infer(options: argparse.Namespace) -> Cited:
    from ..book.used import inference_formulas
    from .infer import build_run

    return inference_formulas(build_run(options).structure)


RUNS: dict[str, Callable[[Any], Cited]] = {"train": _train, "infer": _infer}
"""Verbs whose runs can be cited, and the formulas of the run that a command line asks for."""
