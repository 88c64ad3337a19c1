"""Nonlinear least squares over logarithms of symbols, with exact derivatives and priors.

A row's residual is ln(predicted / measured) over the noise, a symbol's ln(value / start) over the width of its prior.
The loss that damps outliers is of rows only. Derivatives come from reverse mode over the lowered closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..common.extras import import_extra
from ..systems.system_symbols import SYMBOLS
from ..systems.units import BANDWIDTH, FRACTION, RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .symbols import Prior

LOSSES = ("linear", "soft-l1", "huber", "cauchy")
NOISE = 0.05
"""Standard deviation of ln(time) from one measurement to the next that rows are weighed with."""
DEPENDS = 0.01
"""A row depends on a symbol if a change by 1 % moves its time by more than 0.01 %."""
MOVED = 0.5
"""ln of the factor by which symbols are moved in search of a better optimum."""
RATES = (FRACTION, BANDWIDTH, RATE)
"""Dimensions of what makes a time shorter; latencies and sizes make it longer."""
ROUNDS = 3
TRIED = 15
"""Evaluations from each of these starts: enough to see whether they lead anywhere."""
CAUSE = 0.3
"""Parts of a direction below this are not named in it."""
FLATTEST = 1.0
"""A direction that the rows know to less than a factor of e is never separated, whatever the prior."""


class Measured(Protocol):
    """Rows that one closed form predicts."""

    @property
    def rows(self) -> Sequence[Any]:
        """As many as there are."""

    @property
    def seconds(self) -> Any:
        """What each took."""

    def predict(self, values: dict[str, float]) -> Any:
        """Predicted seconds of each row."""

    def slopes(self, values: dict[str, float], names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Predicted seconds of each row, and d ln(seconds) / d ln(symbol) for each symbol that they depend on."""


@dataclass(frozen=True)
class Problem:
    """Rows, the values that stay, and what is believed of those that are fitted."""

    families: Sequence[Measured]
    values: dict[str, float]
    priors: Sequence[Prior]
    noise: float
    loss: str

    @property
    def names(self) -> list[str]:
        """The fitted symbols."""
        return [prior.name for prior in self.priors]

    def at(self, logs: Any) -> dict[str, float]:
        """The value of every symbol, for logarithms of the fitted ones."""
        return self.values | {name: float(value) for name, value in zip(self.names, np.exp(logs), strict=True)}

    def residuals(self, logs: Any) -> tuple[Any, Any]:
        """ln(predicted / measured) of every row, and its derivatives by the logarithms of the fitted symbols."""
        values, names = self.at(logs), self.names
        parts, slopes = [], []
        for family in self.families:
            time, found = family.slopes(values, names)
            parts.append(np.log(time / family.seconds))
            columns = [found.get(name, np.zeros(len(time))) for name in names]
            slopes.append(np.stack(columns, axis=1) if columns else np.zeros((len(time), 0)))
        return np.concatenate(parts), np.concatenate(slopes)


@dataclass(frozen=True)
class Flat:
    """A direction in the space of logarithms about which the rows tell less than was believed before."""

    parts: dict[str, float]
    held: str


@dataclass(frozen=True)
class Fit:
    """The optimum.

    Attributes:
        logs: of the fitted symbols.
        residuals: ln(predicted / measured) of every row.
        slopes: derivatives of these by `logs`.
        weights: what the loss left of each row, 0 to 1.
        scale: how much larger the rows' scatter is than the noise that they were weighed with; at least 1.
    """

    logs: Any
    residuals: Any
    slopes: Any
    weights: Any
    scale: float


def solve(problem: Problem, near: Mapping[str, float] | None = None) -> Fit:
    """The optimum of a problem.

    A maximum of times hides what does not bind, so that an optimum may be one of a wrong bound. Symbols are therefore
    moved from the best optimum so far (`_starts`), and what that leads to is taken if it is better.

    Args:
        problem: what to solve.
        near: logarithms to start from, of an optimum of a like problem; the search is then left out.

    Raises:
        InputError: SciPy is not installed.
    """
    logs = np.array([near[prior.name] if near else np.log(prior.start) for prior in problem.priors])
    if len(logs):
        search = _Search(problem)
        logs, cost = search.from_(logs)
        first = cost
        for _ in range(0 if near else ROUNDS):
            before = cost
            for other in _starts(problem, logs):
                found, reached = search.from_(other, TRIED)
                if reached < cost * (1 - 1e-6):
                    logs, cost = found, reached
            if cost >= before * (1 - 1e-3):
                break
        if cost < first:
            logs, cost = search.from_(logs)
    residuals, slopes = problem.residuals(logs)
    weights = _rho(problem.loss, (residuals / problem.noise) ** 2)[1]
    free = max(1, len(residuals) - len(logs))
    scatter = float(np.sqrt(np.sum(weights * (residuals / problem.noise) ** 2) / free))
    return Fit(logs, residuals, slopes, weights, max(1.0, scatter))


def _starts(problem: Problem, logs: Any) -> Iterator[Any]:
    """Where else to start: each symbol faster or slower by a factor, or it the slow one and the others fast."""
    faster = np.array([MOVED if SYMBOLS[prior.name].dimension in RATES else -MOVED for prior in problem.priors])
    for place in range(len(logs)):
        alone = np.zeros_like(logs)
        alone[place] = faster[place]
        yield logs + alone
        yield logs - alone
        yield logs + np.where(alone != 0, -2 * faster, faster)


class _Search:
    """Least squares of a problem from any start."""

    def __init__(self, problem: Problem) -> None:
        self._optimize = import_extra("scipy.optimize", "calibrate", "calibrate")
        self._problem = problem
        self._start = np.array([np.log(prior.start) for prior in problem.priors])
        self._widths = np.array([prior.width for prior in problem.priors])
        self._low = np.array([np.log(prior.low) for prior in problem.priors])
        self._high = np.array([np.log(prior.high) for prior in problem.priors])
        self._loss = _damp(problem.loss, sum(len(family.rows) for family in problem.families))
        self._last: dict[bytes, tuple[Any, Any]] = {}

    def from_(self, logs: Any, tries: int | None = None) -> tuple[Any, float]:
        """The optimum reached from there in so many evaluations, and its cost."""
        edge = 1e-9  # a start on a bound is inside for SciPy
        found = self._optimize.least_squares(
            lambda logs: self._both(logs)[0],
            np.clip(logs, self._low, self._high),
            jac=lambda logs: self._both(logs)[1],
            bounds=(self._low - edge, self._high + edge),
            loss=self._loss,
            xtol=1e-10,
            ftol=1e-10,
            gtol=1e-10,
            max_nfev=tries,
        )
        return np.clip(found.x, self._low, self._high), float(found.cost)

    def _both(self, logs: Any) -> tuple[Any, Any]:
        key = logs.tobytes()
        if key not in self._last:
            self._last.clear()
            problem = self._problem
            residuals, slopes = problem.residuals(logs)
            believed = (logs - self._start) / self._widths
            whole = np.concatenate([residuals / problem.noise, believed])
            self._last[key] = whole, np.concatenate([slopes / problem.noise, np.diag(1 / self._widths)])
        return self._last[key]


def _damp(loss: str, rows: int) -> Callable[[Any], Any]:
    """SciPy's loss: damped for rows, plain for priors."""

    def rho(squares: Any) -> Any:
        plain = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
        plain[:, :rows] = _rho(loss, squares[:rows])
        return plain

    return rho


def _rho(loss: str, z: Any) -> Any:
    """The loss of a squared residual, and its first two derivatives."""
    if loss == "soft-l1":
        root = np.sqrt(1 + z)
        return np.stack([2 * (root - 1), 1 / root, -0.5 / root**3])
    if loss == "huber":
        root = np.sqrt(np.maximum(z, 1.0))
        near = z <= 1
        return np.stack([np.where(near, z, 2 * root - 1), 1 / root, np.where(near, 0.0, -0.5 / root**3)])
    if loss == "cauchy":
        return np.stack([np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])
    return np.stack([z, np.ones_like(z), np.zeros_like(z)])


def covariance(problem: Problem, fit: Fit) -> Any:
    """Of the logarithms: what rows and priors tell together, rows by the scatter that they have."""
    information = _information(problem, fit)
    believed = np.diag([prior.width**-2 for prior in problem.priors])
    return np.linalg.pinv(information + believed)


def _information(problem: Problem, fit: Fit) -> Any:
    scaled = fit.slopes * (np.sqrt(fit.weights) / (problem.noise * fit.scale))[:, None]
    return scaled.T @ scaled


def flattest(problem: Problem, fit: Fit) -> Flat | None:
    """The direction that the rows know least, if they know it less well than was believed, and who is to be held."""
    if not len(fit.logs):
        return None
    scaled = fit.slopes * (np.sqrt(fit.weights) / (problem.noise * fit.scale))[:, None]
    _, singular, directions = np.linalg.svd(scaled, full_matrices=True)
    known = np.zeros(len(fit.logs))
    known[: len(singular)] = singular
    widths = np.array([prior.width for prior in problem.priors])
    believed = np.minimum(np.sqrt(np.sum((directions * widths) ** 2, axis=1)), FLATTEST)
    error = np.divide(1.0, known, out=np.full_like(known, np.inf), where=known > 0)
    worst = int(np.argmax(error / believed))
    if error[worst] <= believed[worst]:
        return None
    direction = directions[worst]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    largest = float(np.max(np.abs(direction)))
    named = {
        prior.name: float(part)
        for prior, part in zip(problem.priors, direction, strict=True)
        if abs(part) >= CAUSE * largest
    }
    # Of those that cannot be told apart, the data sheet's figure stays, or else the one with most of the direction.
    order = sorted(
        (prior for prior in problem.priors if prior.name in named),
        key=lambda prior: (not prior.measured, -round(abs(named[prior.name]), 6)),
    )
    return Flat(named, order[0].name)
