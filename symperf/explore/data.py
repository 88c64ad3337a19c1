"""What a page knows, as plain data: kinds of runs with their instructions, cases, symbols and rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..codegen.program import OPERATIONS
from ..common.fingerprint import constants_version
from ..common.version import VERSION
from ..formulas.language.symbols import SYMBOLS
from ..formulas.registry import load
from ..spending.prices import rent_of
from ..spending.program import bill_program
from .answers import Answer, equation_of
from .formulas import Calls, Told, told_formula
from .pool import RULE, Pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.model import Model
    from ..systems.system import System
    from .cases import Case, Form, Kind

ENERGIES = ("matrix", "vector", "memory", "l2", "scale_up", "scale_out")
WIDE = f"{RULE}wide_rate", f"{RULE}in_wide_rate"
"""The 16-bit rate of products in another format, and 1 where they are in another."""

TOLD = f"{RULE}told"
"""1 where a system tells energies of FLOPs and bytes, and not a power alone."""
READ = ("memory_capacity", "power", "price_per_hour", TOLD)
"""Inputs that a page reads whether or not an instruction does."""

_IDLE, _SUMMED = 1, 2
"""What a term is marked with."""


class Texts:
    """Texts by number, each once, and equations of answers likewise."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.answers: dict[Answer, int] = {}

    def place(self, text: str) -> int:
        """The number of a text."""
        return self.places.setdefault(text, len(self.places))

    def equation(self, answer: Answer) -> int:
        """The number of an answer's equation."""
        return self.answers.setdefault(replace(answer, calls=()), len(self.answers))


def page_data(
    kinds: Sequence[Kind], models: Sequence[Model], systems: Sequence[System], book: str = ""
) -> dict[str, Any]:
    """All of it.

    Args:
        kinds: of runs.
        models: to choose from.
        systems: to choose from.
        book: address at which the pages of the book begin, to which formulas lead; "" where there is none.
    """
    texts = Texts()
    made = [_Packed(kind, systems, texts).data() for kind in kinds]
    known = list(texts.places)
    named = {known[place] for kind in made for calls in kind["calls"] for place in calls[::2]}
    return {
        "version": VERSION,
        "constants": constants_version(),
        "operations": list(OPERATIONS),
        "models": [model.name for model in models],
        "systems": [system.name for system in systems],
        "kinds": made,
        "book": book,
        "texts": list(texts.places),
        "equations": [equation_of(each) for each in texts.answers],
        "formulas": {name: told_formula(formula) for name, formula in sorted(load().items()) if name in named},
    }


class _Packed:
    """One kind of run, packed."""

    def __init__(self, kind: Kind, systems: Sequence[System], texts: Texts) -> None:
        self.kind, self.systems, self.texts, self.pool = kind, systems, texts, Pool()
        named: dict[str, str | int] = dict(kind.named)
        self.given: dict[str, int] = {}
        for name, node in kind.derived.items():
            self.given[name] = named[name] = self.pool.expression(node, named)
        self.named = named
        self.calls: dict[tuple[tuple[str, str], ...], int] = {}

    def data(self) -> dict[str, Any]:
        """All of it, as plain data."""
        kind = self.kind
        keys = {key: place for place, key in enumerate(kind.forms)}
        structures = [self._structure(form) for form in kind.forms.values()]
        rules = [[self.pool.expression(rule.tree, self.named), rule.name, rule.message] for rule in kind.rules]
        for name in READ:
            self.pool.builder.emit("input", name)
        symbols = {name: place for place, name in enumerate(self.pool.symbols())}
        bases: dict[tuple[int, ...], dict[str, tuple[float, str]]] = {}
        cases = []
        for places, case in kind.cases.items():
            values = self._values(case, places)
            base = bases.setdefault(places[:2], values) if case.structure else {}
            changed = {n: pair for n, pair in values.items() if n in symbols and (base is values or base[n] != pair)}
            cases.append(
                {
                    "structure": keys.get(case.structure, -1),
                    "values": self._bound(changed, symbols),
                    **({"words": dict(case.words)} if case.structure and base is values else {}),
                    **({"reason": case.reason} if case.reason else {}),
                    **({"served": case.served} if case.served else {}),
                }
            )
        return {
            "name": kind.name,
            "choices": [
                {"name": c.name, "sentence": c.sentence, "values": list(c.values), "start": c.start}
                for c in kind.choices
            ],
            "numbers": [self._number(each) for each in kind.numbers],
            "flags": dict(kind.flags),
            "cases": cases,
            "structures": structures,
            "rules": rules,
            "calls": [[self.texts.place(text) for pair in calls for text in pair] for calls in self.calls],
            "derived": dict(self.given),
            "symbols": [self._symbol(name) for name in symbols],
            "pool": self.pool.packed(),
        }

    def _structure(self, form: Form) -> dict[str, Any]:
        program, place = form.compiled.program, self.texts.place
        at = self.pool.add(program, self.given)
        outputs = {name: at[position] for name, position in program.outputs.items()}
        one, emit = self.pool.builder.emit("constant", 1.0), self.pool.builder.emit
        wide, flag = (emit("input", name) for name in WIDE)
        # Energy of a FLOP is that in 16 bits by the ratio of the rates, which is 1 where products are in 16 bits.
        ratio = emit("multiply", flag, emit("divide", wide, emit("input", "matrix_rate")))
        energy = emit("multiply", emit("input", "matrix_energy"), emit("add", ratio, emit("subtract", one, flag)))
        whole = emit("input", "matrix_energy")
        given = {**self.given, "busy_time": outputs["time"], "matrix_energy": energy, "attention_energy": whole}
        spent = self.pool.add(form.spending, given)
        outputs |= {n: spent[p] for n, p in form.spending.outputs.items() if n.startswith(("energy/", "work/"))}
        bill = bill_program()
        paid = self.pool.add(bill, {"busy_time": outputs["time"], "devices": outputs["devices"]})
        outputs["rented_cost"] = paid[bill.outputs["rented_cost"]]
        lets = {path: at[position] for path, position in program.lets.items()}
        stages = {
            f"{name}/{output}": added[position]
            for name, part in (("stage", form.stage), ("pass", form.passes))
            if part is not None
            for added in [self.pool.add(part, self.given | lets)]
            for output, position in part.outputs.items()
        }
        return {
            "outputs": [number for name, position in outputs.items() for number in (place(name), position)],
            "stages": [number for name, position in stages.items() for number in (place(name), position)],
            "answers": [
                number
                for name, answer in form.answers.items()
                for number in (place(name), self.texts.equation(answer), self._calls(answer.calls))
            ],
            "terms": [
                number
                for term in form.compiled.terms
                for number in (
                    place(term.path),
                    at[program.lets[term.path]],
                    _IDLE if term.idle else _SUMMED if form.told[term.path].summed else 0,
                    self._calls(form.told.get(term.path, Told()).calls),
                )
            ],
        }

    def _calls(self, calls: Calls) -> int:
        return self.calls.setdefault(calls, len(self.calls))

    def _values(self, case: Case, places: Sequence[int]) -> dict[str, tuple[float, str]]:
        if not case.structure:
            return {}
        system = self.systems[places[1]]
        found = dict.fromkeys(self.pool.symbols(), (0.0, "not used")) | case.values()
        rates = system.matrix_rates
        wide = next((name for name in ("bf16", "fp16") if name in rates), None)
        rate = 0.0 if wide is None else rates[wide].value
        other = float(wide is not None and rate != case.bound["matrix_rate"][0])
        quantities = system.quantities
        energies = {n: (q.value, q.source) for n, q in quantities.items() if n.endswith("_energy") or n == "power"}
        rent, tells = rent_of(system), any(f"{name}_energy" in quantities for name in ENERGIES)
        return (
            found
            | {WIDE[0]: (rate or 1.0, ""), WIDE[1]: (other, "")}
            | energies
            | ({} if rent is None else {"price_per_hour": (rent.value, rent.source)})
            | {TOLD: (float(tells), "")}
        )

    def _bound(self, values: Mapping[str, tuple[float, str]], symbols: Mapping[str, int]) -> list[float]:
        return [
            number
            for name, (value, source) in values.items()
            for number in (symbols[name], int(value) if value == int(value) else value, self.texts.place(source))
        ]

    def _number(self, each: Any) -> dict[str, Any]:
        return {
            **{name: getattr(each, name) for name in ("name", "group", "start", "low", "high", "whole")},
            "degrees": list(each.degrees),
            "follows": {place: list(names) for place, names in each.follows.items()},
        }

    def _symbol(self, name: str) -> dict[str, Any]:
        entry = SYMBOLS.find(name)
        if entry is None:
            return {"name": name}
        return {
            "name": name,
            "sentence": entry.sentence,
            "unit": str(entry.dimension),
            **({"resource": entry.resource} if entry.resource else {}),
        }
