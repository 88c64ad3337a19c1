"""What the formulas leave on shapes kept back: the tables of the book and of docs/kernels.md.

python benchmarks/calibration/kernel_scores.py             # prints the scoreboard as Markdown
python benchmarks/calibration/kernel_scores.py --write     # and writes symperf/catalogue/kernels/*.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf.book.measured import CATALOGUE, EXAMPLES, SCORES
from symperf.calibration.kernels.stages import STAGES
from symperf.infer.stack import Stack
from symperf.plans.plan import Plan
from symperf.systems.system_symbols import SYMBOLS
from symperf.systems.units import spell
from symperf.validation.kernels.formats import STACKS, system_of
from symperf.validation.kernels.score import score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from symperf.infer.reached import Reached
    from symperf.systems.system_symbols import Quantity
    from symperf.validation.kernels.rows import Group
    from symperf.validation.kernels.score import Scores

KERNELS = Path(__file__).parent / "kernels"
DEVICES = (
    "a100_sxm",
    "h100_sxm",
    "h200_sxm",
    "b200_sxm",
    "b300_sxm",
    "gb200",
    "gb300",
    "l40s",
    "rtx_pro_6000_server",
    "b60",
)
PAGES = {
    "gemm": ("looped_matmul", "products"),
    "context_attention": ("attention_blocks", "attention of prompts"),
    "encoder_attention": ("attention_blocks", "attention without a mask"),
    "generation_attention": ("block_decode", "attention over a cache"),
    "context_mla": ("latent_attention", "latent attention, prompts"),
    "generation_mla": ("latent_attention", "latent attention, decoding"),
    "mla_bmm": ("latent_attention", "products that absorb"),
    "moe": ("grouped_experts", "experts"),
    "nccl": ("domain", "NCCL"),
    "custom_allreduce": ("one_shot_two_shot", "all-reduces of the software"),
    "wideep_deepep_ll": ("expert_exchange", "DeepEP, low latency"),
    "wideep_deepep_normal": ("expert_exchange", "DeepEP, normal"),
    "trtllm_alltoall": ("expert_exchange", "all-to-all of TensorRT-LLM"),
    "gdn": ("measured_scan", "delta rule"),
    "kda": ("channel_decay", "Kimi Delta Attention"),
    "mamba2": ("ssm", "Mamba-2"),
    "dsa_context_module": ("selected_attention", "modules with selected keys, prompts"),
    "dsa_generation_module": ("selected_attention", "modules with selected keys, decoding"),
    "msa_context_module": ("selected_attention", "modules with selected blocks, prompts"),
    "msa_generation_module": ("selected_attention", "modules with selected blocks, decoding"),
    "dsv4_csa_context_module": ("compressed_attention", "modules with selected entries, prompts"),
    "dsv4_csa_generation_module": ("compressed_attention", "modules with selected entries, decoding"),
    "dsv4_hca_context_module": ("compressed_attention", "modules with all entries, prompts"),
    "dsv4_hca_generation_module": ("compressed_attention", "modules with all entries, decoding"),
}
"""Page of the book and name of each table."""
SHOWN = ("h100_sxm", "b200_sxm")
"""Devices of the examples."""
EACH = 3
"""Examples of a table on a device."""


def main() -> None:
    """Score, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the files of the catalogue")
    parser.add_argument("--constants", action="store_true", help="print the constants instead")
    options = parser.parse_args()
    if options.constants:
        print(constants())
        return
    found = score(KERNELS, shapes=True)
    print(page(found))
    if options.write:
        _write_page(page(found))
        usual = {group: rows for group, rows in found.items() if not _is_apart(group)}
        _write("scores.csv", SCORES, scores(usual))
        _write("examples.csv", EXAMPLES, examples(usual))


def page(found: Scores) -> str:
    """The scoreboard of docs/kernels.md: usual kernels by format and by software, other kernels, and counts."""
    usual = {group: rows for group, rows in found.items() if not _is_apart(group)}
    apart = {group: rows for group, rows in found.items() if _is_apart(group)}
    errors = np.concatenate([rows.errors[rows.test] for rows in usual.values()])
    scored = sum(len(rows.measured) for rows in found.values())
    left = sum(sum(rows.left_out.values()) for rows in found.values())
    away = np.abs(errors)
    summary = (
        f"{scored:,} times are scored, {left:,} left out. On the {len(errors):,} rows of usual kernels whose shapes "
        f"were kept back: median {np.median(away):.1%}, mean {away.mean():.1%}, bias {errors.mean():+.1%}."
    )
    return "\n".join(
        (
            summary,
            "",
            board(usual, _by_format, _device, DEVICES),
            "By software:",
            "",
            board(usual, lambda group: (_table(group), group.software), _device, DEVICES),
            "Kernels that a software takes on request only, or that were scored apart:",
            "",
            board(apart, _by_format, _device, DEVICES),
            "Constants of its own for each pair, and of the device:",
            "",
            counts(),
        )
    )


def _is_apart(group: Group) -> bool:
    return group.operation.endswith(("other kernel", "eager"))


def _table(group: Group) -> str:
    return group.operation.partition("/")[0]


def _by_format(group: Group) -> tuple[str, str]:
    table = _table(group)
    if table in ("nccl", "mla_bmm", "gdn", "kda", "mamba2"):
        return group.operation, group.format
    return table, group.format


def _device(group: Group) -> str:
    return group.device


def counts() -> str:
    """A Markdown table of the number of constants of each pair, and of each device's own."""
    systems = [system_of(device) for device in DEVICES]
    stacks = [Stack.load(profile) for profile in STACKS.values()]
    own = {name for stage in STAGES if stage.of_device for name in stage.constants}
    lines = [f"| | {' | '.join(DEVICES)} |", "|---|" + "---:|" * len(DEVICES)]
    for stack in stacks:
        found = [next((stack.reached[n] for n in system.lineage if n in stack.reached), None) for system in systems]
        told = ["" if each is None else str(each.count - len(own & set(each.constants))) for each in found]
        lines.append(f"| {stack.name} | {' | '.join(told)} |")
    device = [str(len(own & {*system.quantities, *stacks[0].on(system, Plan()).quantities})) for system in systems]
    lines.append(f"| the device | {' | '.join(device)} |")
    return "\n".join(lines) + "\n"


def _write_page(text: str) -> None:
    path = Path(__file__).parent.parent.parent / "docs" / "kernels.md"
    before, start, rest = path.read_text(encoding="utf-8").partition("<!-- scores -->\n")
    _, end, after = rest.partition("<!-- end of scores -->\n")
    if not start or not end:
        raise SystemExit(f"{path}: no place for the scores")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def constants() -> str:
    """Markdown tables of every constant of kernels: of devices, and of each software on each of them."""
    lines = []
    for profile in STACKS.values():
        stack = Stack.load(profile)
        systems = list(stack.reached)
        told = {name: _constants_of(stack.reached[name]) for name in systems}
        names = dict.fromkeys(name for values in told.values() for name in values)
        counts = [str(stack.reached[name].count) for name in systems]
        lines += [f"| {profile} | {' | '.join(systems)} |", "|---|" + "---:|" * len(systems)]
        lines += [f"| {name} | {' | '.join(told[each].get(name, '') for each in systems)} |" for name in names]
        lines += [f"| constants | {' | '.join(counts)} |", ""]
    return "\n".join(lines)


def _constants_of(reached: Reached) -> dict[str, str]:
    found = dict(reached.constants) | {
        f"{name}, {form}": quantity for form, values in reached.formats.items() for name, quantity in values.items()
    }
    return {name: _value(name.partition(",")[0], quantity) for name, quantity in found.items()}


def _value(name: str, quantity: Quantity) -> str:
    kind = SYMBOLS[name].dimension
    ends = [spell(end, kind) for end in (quantity.low, quantity.high) if end is not None]
    return spell(quantity.value, kind) + (f" ({' to '.join(ends)})" if ends else "")


def board(found: Scores, row: Callable[[Any], tuple[str, ...]], column: Callable[[Any], str], columns: Any) -> str:
    """A Markdown table of medians, means and biases of rows kept back."""
    cells: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    for group, rows in found.items():
        errors = rows.errors[rows.test] if len(rows.measured) else np.zeros(0)
        cells.setdefault(row(group), {}).setdefault(column(group), []).append(errors)
    lines = [f"| | | {' | '.join(columns)} |", "|---|---|" + "---:|" * len(columns)]
    for key, parts in sorted(cells.items()):
        told = [_cell(np.concatenate(parts[name])) if name in parts else "" for name in columns]
        if any(told):
            lines.append(f"| {' | '.join(key)} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _cell(errors: Any) -> str:
    if not len(errors):
        return ""
    away = np.abs(errors)
    return f"{100 * np.median(away):.0f} / {100 * away.mean():.0f} ({100 * errors.mean():+.0f})"


def scores(found: Scores) -> Iterable[tuple[str, ...]]:
    """Page, kernels, device, rows kept back, and median, mean and bias of their errors."""
    for table, (page, name) in PAGES.items():
        for device in DEVICES:
            parts = [
                rows.errors[rows.test]
                for group, rows in found.items()
                if group.operation.partition("/")[0] == table and group.device == device and len(rows.measured)
            ]
            errors = np.concatenate([np.zeros(0), *parts])
            if len(errors):
                away = np.abs(errors)
                numbers = (f"{np.median(away):.1%}", f"{away.mean():.1%}", f"{errors.mean():+.1%}")
                yield page, name, system_of(device).name, f"{len(errors):,}", *numbers


def examples(found: Scores) -> Iterable[tuple[str, ...]]:
    """Page, kernels, device, software, shape, and microseconds measured and predicted, at even steps of the time."""
    for table, (page, name) in PAGES.items():
        for device in SHOWN:
            rows = [
                (rows.measured[at], rows.predicted[at], group.software, rows.shapes[at])
                for group, rows in found.items()
                if group.operation.partition("/")[0] == table and group.device == device
                for at in np.flatnonzero(rows.test)
            ]
            rows.sort()
            for at in np.linspace(0, len(rows) - 1, EACH + 2).astype(int)[1:-1] if len(rows) > EACH else ():
                measured, predicted, software, shape = rows[at]
                kernel, _, sizes = shape.partition(" ")
                told = " ".join(part for part in sizes.split() if not part.endswith("=0"))
                times = (_time(measured), _time(predicted))
                yield page, name, system_of(device).name, software, f"{kernel.replace('_', ' ')}: {told}", *times


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"


def _write(name: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with (CATALOGUE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("page", *heads))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
