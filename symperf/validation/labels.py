"""What errors are grouped by: what a row's run is of, and where the row is from."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

from .case import CALIBRATION
from .chosen import judged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import BaseRun
    from ..models.model import Model
    from .case import Case

GROUPINGS: Final = ("family", "device", "format", "class", "software", "size", "year")
"""What `symperf validate --by` takes."""
SIZES: Final = ((0.0, "under 2B"), (2e9, "2B to 20B"), (2e10, "20B to 100B"), (1e11, "100B and more"))
"""Least parameters of a class of sizes, and its name."""
RECURRENT: Final = ("linear_attention", "lightning_attention")
"""Mixers that are called attention and keep a state."""
UNTOLD: Final = "not told"
_YEARS: Final = (
    (re.compile(r"MLPerf Training v(\d)\."), 2020),
    (re.compile(r"\b20(2\d)\b"), 2000),
    (re.compile(r"(?:NeMo|Bridge|recipe)\D*\b(2[3-9])\.\d\d\b"), 2000),
)
"""What tells the year in the name of a software, and to what it is added."""
_RELEASE: Final = re.compile(r"[\s(,/]+v?\d.*$|\s*\(.*$")


def labels_of(case: Case, run: BaseRun) -> dict[str, str]:
    """The labels of a case that a run answers, beside those of its row."""
    stack = getattr(run, "stack", None)
    serves = stack is not None
    software = case.labels.get("software") or (stack.name if stack else case.labels.get("framework", ""))
    routed = run.model.architecture.routed
    device = run.system.name
    found = {
        "family": case.source,
        "device": device,
        "format": format_label(run.plan.precision),
        "class": class_of(run),
        "software": _RELEASE.sub("", software) if not serves else software,
        "size": size_class(run.value("parameters") if "parameters" in run.compiled.program.outputs else 0.0),
        "year": year_of(case.source, case.labels.get("framework", "")),
        "judged": judged_as(case.source, routed=routed, generation=run.system.generation, serves=serves),
    }
    found |= layout_labels(case, run)
    return {**case.labels, **{name: value or UNTOLD for name, value in found.items()}}


def year_of(source: str, framework: str = "") -> str:
    """The year of a row: that which the name of its software tells, or that of its family.

    >>> year_of("DGXC", "NeMo 24.09"), year_of("MLPERF", "MLPerf Training v4.1 submission"), year_of("KORTH")
    ('2024', '2024', '2022')
    """
    for pattern, first in _YEARS:
        if told := pattern.search(framework):
            return str(first + int(told[1]))
    return str(judged()["year"].get(source.removesuffix(CALIBRATION).removesuffix(" memory"), UNTOLD))


def layout_labels(case: Case, run: BaseRun) -> dict[str, str]:
    """A row's layout, and for what layouts compete: of training the batch is a part of the layout.

    They compete on one release of a software: another one has other kernels.
    """
    names = ("sequence",) if "sequence" in run.bound else ("batch", "prompt", "generate")
    work = " ".join(f"{name}={run.bound[name][0]:g}" for name in names if name in run.bound)
    flight = case.case.rpartition(", ")[2]
    work += f" {flight}" if flight.endswith(" in flight") else ""
    batch = f"{run.bound['batch'][0]:g}" if "batch" in run.bound else ""
    size = f"{run.value('parameters'):.5g}" if "parameters" in run.compiled.program.outputs else ""
    release = case.labels.get("framework", "")
    contest = f"{run.model.name} {size} {shape_of(run.model)} {run.system.name} {run.plan.devices} {work} {release}"
    return {"layout": f"{run.plan} batch={batch}", "contest": contest, "batch": batch}


def shape_of(model: Model) -> str:
    """What tells the sizes of a model from others of as many parameters: other heads leave other products.

    A fingerprint of 32 bits.
    """
    return f"{zlib.crc32(repr(sorted(model.sizes.items())).encode()):08x}"


def judged_as(source: str, *, routed: bool, generation: str, serves: bool) -> str:
    """The subject by whose aim a row is judged, one of the keys of `aim` in judged.toml.

    >>> judged_as("DGXC", routed=True, generation="", serves=False)
    'mixtures'
    """
    if source.endswith(" memory"):
        return "memory"
    if source.startswith("serving "):
        return "serving"
    if generation.casefold() in judged()["aim"]:
        return generation.casefold()
    if serves:
        return "inference"
    return "mixtures" if routed else "training"


def class_of(run: BaseRun) -> str:
    """The class of a model's architecture."""
    architecture = run.model.architecture
    mixers = {mixer for kind in architecture.kinds for mixer in (kind.mixer, *kind.beside)}
    if any((mixer != "none" and not mixer.endswith("attention")) or mixer in RECURRENT for mixer in mixers):
        return "hybrid or recurrent"
    return "mixture of experts" if architecture.routed else "dense"


def format_label(precision: str | None) -> str:
    """The format of products; 16 bits where it is not narrower or wider.

    >>> format_label(None), format_label("fp8-block")
    ('16 bits', 'fp8')
    """
    return "16 bits" if precision in (None, "bf16", "fp16") else precision.split("-")[0]


def size_class(parameters: float) -> str:
    """The class of a number of parameters.

    >>> size_class(7e9)
    '2B to 20B'
    """
    return [name for least, name in SIZES if parameters >= least][-1] if parameters else UNTOLD


def label(labels: Mapping[str, str], by: str) -> str:
    """The name of the group that a row is of."""
    return labels.get(by) or UNTOLD
