"""`symperf explore`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..common.outputs import check_file, write_file
from ..models.model import Model
from ..plans.plan import positive_integer
from ..systems.system import System, catalogue_names
from .output import write, write_json
from .settings import plan_of

if TYPE_CHECKING:
    import argparse

TOLD = "explore: --output {}: cannot be written"
SECONDS = 0.8
"""That a structure takes to compile on a slow core."""
MANY = 40
"""Structures above which a user is told that compiling them takes a while."""
FEWEST = 8
"""Where nothing is asked for: micro-batches of a replica for each of its stages, and sequences of one in inference."""


def run(options: argparse.Namespace) -> int:
    """Write an explorer of models on systems."""
    from ..explore.explorer import KINDS, Explorer, parse_varied

    if options.only is not None and options.only not in KINDS:
        raise InputError(f"--only: found {quote(options.only)}, expected {' or '.join(KINDS)}")
    check_file(options.output, TOLD)
    plan = plan_of(options, {})
    models = [Model.load(name, options.ignore_key) for name in options.models]
    context = min(model.context or 4096 for model in models)
    batch = FEWEST * plan.dp * (plan.micro_batch or 1) * plan.pp if options.batch is None else options.batch
    sequence = min(4096, context) if options.sequence is None else options.sequence
    prompt = min(1024, context // 2) if options.prompt is None else options.prompt
    generate = min(256, context // 4) if options.generate is None else options.generate
    asked = {"stack": options.stack, "kv_precision": options.kv_precision}
    explorer = Explorer(
        models,
        [System.load(name) for name in name_systems(options.system)],
        plan,
        kinds=KINDS if options.only is None else (options.only,),
        train=(positive_integer("batch", batch), positive_integer("sequence", sequence)),
        infer=(FEWEST * plan.dp if options.sequences is None else options.sequences, prompt, generate),
        varied=parse_varied(options.vary),
        options={name: value for name, value in asked.items() if value is not None},
        book=options.book,
    )
    if (count := explorer.structures()) > MANY and sys.stderr is not None:
        print(
            f"explore: {count} structures of a training step, which take about {count * SECONDS / 60:.0f} minutes to "
            "compile the first time (--vary offers fewer)",
            file=sys.stderr,
        )
    data = explorer.data()
    text = explorer.html(data)
    write_file(options.output, text, TOLD)
    structures = {kind["name"]: len(kind["structures"]) for kind in data["kinds"]}
    choices = {kind["name"]: len(kind["cases"]) for kind in data["kinds"]}
    size = len(text.encode())
    if options.json:
        write_json({"file": options.output, "bytes": size, "structures": structures, "choices": choices})
        return 0
    counts = ", ".join(f"{count} structures of {name}" for name, count in structures.items())
    write(f"{options.output}: {size / 1e6:.2f} MB with the programs of {counts}; open it in a browser\n")
    return 0


def name_systems(names: list[str]) -> list[str]:
    """Names of systems; `all` stands for those of the catalogue that are not named beside it."""
    if "all" not in names:
        return names
    first = [name for name in names if name != "all"]
    return [*first, *(name for name in catalogue_names() if name not in first)]
