"""A batch that generates with drafted tokens: `symperf infer` with a draft model or a head.

Prefill is that of the model and, after it, of what drafts; then every step drafts k tokens and verifies them. A step is
the mean over the contexts of the generation, as in serving, and all sequences of a replica take it together.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..models.draft_heads import head_modules
from .request import ServingRequest
from .serving import Serving

if TYPE_CHECKING:
    from ..models.model import Model
    from ..runs.inference_run import InferenceRun
    from .engine import Times
    from .speculation import Acceptance


class SpeculativeGeneration:
    """An inference with what drafts for its model.

    Args:
        run: the inference.
        draft: a draft model, or a head.
        acceptance: of drafted tokens.
        draft_length: tokens drafted for each step; by default the best for a sequence alone.

    Raises:
        InputError: a value out of range, or a plan that cannot run with a head.
    """

    def __init__(
        self, run: InferenceRun, draft: Model, acceptance: Acceptance | None, draft_length: int | None = None
    ) -> None:
        work, question = run.work, run.question
        asked = ServingRequest(
            work.prompt, work.generate, chunk=work.prompt, acceptance=acceptance, draft_length=draft_length
        )
        options = {name: question[name] for name in ("stack", "kv_precision")} | {"adapters": run.adapters}
        self.run, self.sequences = run, run.work.batch / run.plan.dp
        self.serving = Serving(
            run.base_model, run.bare_system, run.base_plan, asked, draft=draft, values=run.given, **options
        )
        self.draft_length = self.serving.draft_length

    @cached_property
    def times(self) -> Times:
        """The iterations with drafted tokens."""
        return self.serving.times(self.draft_length)

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens of a step and a sequence."""
        return self.serving.tokens_of_a_step(self.draft_length)

    @property
    def step_s(self) -> float:
        """Seconds of a step: the drafts and the pass that verifies them."""
        return self.times.decode(self.sequences)

    @property
    def draft_prefill_s(self) -> float:
        """Seconds in which what drafts reads the prompts, after the model; a prefix is in its cache as well."""
        groups = min(float(self.run.plan.pp), max(1.0, self.sequences))
        read = self.run.work.prompt - self.run.prefix
        values = {"chunk_tokens": self.sequences * read / groups, "groups_in_flight": groups}
        return self.serving.evaluators[1]("prefill", decoding=0.0, step_tokens=1.0, **values)

    @property
    def prefill_s(self) -> float:
        """Seconds until all first tokens are there."""
        return self.run.value("prefill") + self.draft_prefill_s

    @property
    def decode_s(self) -> float:
        """Seconds of all later tokens."""
        return (self.run.work.generate - 1) / self.tokens_per_step * self.step_s

    @property
    def draft_bytes(self) -> float:
        """Bytes of what drafts on a device, with its caches."""
        draft, evaluator = self.serving.draft, self.serving.evaluators[1]
        assert draft is not None
        own = evaluator("memory/weights") + self.sequences * evaluator("cache/sequence")
        return head_modules(draft.model) * own

    @property
    def fits(self) -> bool:
        """Whether a device holds it beside all else."""
        return self.run.value("memory") + self.draft_bytes <= self.run.value("capacity_bytes")

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain data."""
        assert self.serving.draft is not None
        per_token = self.step_s / self.tokens_per_step
        plain = self.run.value("time_per_token")
        return {
            "draft": self.serving.draft.model.name,
            "draft_length": self.draft_length,
            "acceptance": self.serving.asked.acceptance,
            "tokens_per_step": self.tokens_per_step,
            "step_s": self.step_s,
            "prefill_s": self.prefill_s,
            "decode_s": self.decode_s,
            "time_s": self.prefill_s + self.decode_s,
            "time_per_token_s": per_token,
            "speedup": plain / per_token,
            "draft_bytes": self.draft_bytes,
            "fits": self.fits,
        }
