"""What a prediction may be wrong by: causes that are told apart, each with its spread.

A symbol that has a spread belongs to one cause, by its name: what a network does, what a host does, how unevenly tokens
choose experts, and what kernels do, which is the rest. Two causes have no symbol. *software*: the kernels of the
software were not measured on the device, so that another software of the same age may stand for it. *rest*: what no
formula and no spread has. Their sizes stand in `catalogue/intervals.toml`, which `benchmarks/calibration/intervals.py`
writes from rows of use = calibration alone.

The rest is found by split conformal prediction (Lei et al. 2018, arXiv 1604.04173): a
calibration row needs the rest that, added in quadrature to its own spreads, would let its interval end at the
measurement, upwards or downwards; each side of an interval has the quantile of these that leaves 5 % of them out. Rows
of one software, device and model are alike, so that each such group of nine rows or more weighs the same (pooling of
distributions: Dunn, Wasserman and Ramdas 2023, arXiv 1809.07441); a group of 39 rows or more has quantiles of its own,
as with fewer the quantile of 95 % is its largest row. Where the spreads of symbols alone hold more than that, no rest
is left, and a *share* of them is what the rows ask for.

What *software* changes is seen in softwares whose kernels were measured: predictions without their constants beside
those with them, of dense models in 16 bits, of dense models in narrower formats, and of mixtures of experts apart
(Mondrian conformal prediction: Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World, section 4.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.files import read_toml
from ..plans.plan_fields import WIDE_PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = Path(__file__).parent.parent / "catalogue" / "intervals.toml"
KERNELS, NETWORK, HOST, IMBALANCE, SOFTWARE, REST = CAUSES = (
    *("kernels", "network", "host", "imbalance", "software", "rest"),
)
"""Names of the causes."""
TRAINING, INFERENCE, PROMPT, FIRST_TOKEN, TOKEN = KINDS = ("training", "inference", "prompt", "first_token", "token")
"""Kinds of answers whose rest was calibrated: a training step; decoding and whole batches; the pass of a prompt; a
loaded server's time to the first token, and of each later one."""
DENSE, NARROW, MIXTURES = SUBJECTS = ("dense", "narrow", "mixtures")
"""Of what it was calibrated what software changes: dense models in 16 bits, in narrower formats, and experts."""
_BY_START: Final = (
    ("token_imbalance", IMBALANCE),
    ("pair_crowding", NETWORK),
    ("collective_latency", NETWORK),
    *((start, NETWORK) for start in ("scale_", "switch_", "domain_", "peer_", "exchange_", "bulk_", "overlap_")),
    *((start, HOST) for start in ("host_", "step_latency", "launch_latency", "gap_latency", "graph_removal")),
    *((start, HOST) for start in ("request_", "tokenizer_", "crowd_", "sampling_", "overhead_latency", "jitter")),
)
"""How the name of a symbol begins -> its cause, the first that fits; all others are of kernels."""
Steps = tuple[float, float]
"""How far an answer's logarithm may be moved, downwards and upwards, both 0 or more."""


@dataclass(frozen=True)
class Scatter:
    """What no symbol has, of one kind of answer.

    Attributes:
        below: the rest downwards, in logarithms.
        above: upwards.
        software: how far the answer may be, downwards and upwards, where the software's kernels were not measured.
        rows: of calibration that both ends are from.
        shares: parts of the symbols' spreads that the rows ask for, downwards and upwards.
    """

    below: float
    above: float
    software: Steps
    rows: int
    shares: Steps = (1.0, 1.0)

    @property
    def turned(self) -> Scatter:
        """Of an answer that falls as the time grows."""
        up, down = self.shares
        return Scatter(self.above, self.below, (self.software[1], self.software[0]), self.rows, (down, up))


def cause_of(symbol: str) -> str:
    """The cause that a symbol's spread belongs to.

    >>> cause_of("scale_up_efficiency"), cause_of("matrix_efficiency")
    ('network', 'kernels')
    """
    return next((cause for start, cause in _BY_START if symbol.startswith(start)), KERNELS)


def scatter_of(kind: str, group: str = "", subject: str = DENSE) -> Scatter:
    """What no symbol has, of a kind of answer; of a group of calibration rows where that has its own.

    Args:
        kind: one of `KINDS`.
        group: by `group_name`.
        subject: one of `SUBJECTS`.
    """
    entry = _table()[kind]
    own = entry.get("own", {}).get(group, entry)
    software = _table()["software"][PROMPT if kind in (TRAINING, PROMPT, FIRST_TOKEN) else TOKEN][subject]
    shares = (own.get("share_below", 1.0), own.get("share_above", 1.0))
    return Scatter(own["below"], own["above"], (software["below"], software["above"]), own["rows"], shares)


def subject_of(precision: str | None, *, routed: bool) -> str:
    """What a run is to the calibration of what software changes, one of `SUBJECTS`.

    >>> subject_of("fp8", routed=False), subject_of(None, routed=True)
    ('narrow', 'mixtures')
    """
    if routed:
        return MIXTURES
    return DENSE if precision in (None, "bf16", "fp16", *WIDE_PRECISIONS) else NARROW


def group_name(software: str, system: str, model: str) -> str:
    """The name of a group of calibration rows."""
    return f"{software} {system} {model}"


def imbalance() -> Steps:
    """The low and high end of the tokens of the fullest device's experts, over what a run takes them to be."""
    found = _table()["imbalance"]
    return found["low"], found["high"]


def measured_systems() -> list[str]:
    """The systems on which whole training steps were measured."""
    found: list[str] = _table()[TRAINING]["measured"]
    return found


def combine(moved: Mapping[str, Steps], scatter: Scatter, *, measured: bool) -> dict[str, Steps]:
    """How far each cause moves the logarithm of an answer: the steps of its symbols in quadrature."""
    found, (below, above) = {}, scatter.shares
    for cause in (KERNELS, NETWORK, HOST, IMBALANCE):
        own = [steps for name, steps in moved.items() if cause_of(name) == cause]
        found[cause] = (below * math.hypot(*(down for down, _ in own)), above * math.hypot(*(up for _, up in own)))
    software = (0.0, 0.0) if measured else scatter.software
    return {**found, SOFTWARE: software, REST: (scatter.below, scatter.above)}


def whole(causes: Mapping[str, Steps]) -> Steps:
    """How far all causes together move the logarithm of an answer, downwards and upwards."""
    return math.hypot(*(down for down, _ in causes.values())), math.hypot(*(up for _, up in causes.values()))


@cache
def _table() -> dict[str, Any]:
    return read_toml(FILE, FILE.name)
