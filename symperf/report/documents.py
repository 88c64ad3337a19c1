"""What the lengths of documents make of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import percent, quantity

if TYPE_CHECKING:
    from ..runs.training_run import Run
    from ..train.document_lengths import Documents


class DocumentAnswers:
    """Answers of a step beside those of its sequences.

    Args:
        run: the step.
        documents: what its sequences hold.
    """

    def __init__(self, run: Run, documents: Documents) -> None:
        self.run, self.documents = run, documents

    @property
    def waited(self) -> float:
        """Seconds of the step that would not be if all sequences had the same attention."""
        known = self.run.compiled.program.inputs
        alike: dict[str, float] = {name: 0.0 for name in ("document_variation", "shard_variation") if name in known}
        return self.run.value("time") - self.run.value_at("time", alike) if alike else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        found = self.documents
        return {
            "packed": found.packed,
            "mean_length": found.mean,
            "token_length": found.token_length,
            "longest": max(found.counts),
            "documents_per_step": self.run.batch * found.a_sequence,
            "useful_share": found.useful_share,
            "useful_tokens_per_s": found.useful_share * self.run.value("tokens_per_s"),
            "attention_variation": found.variation if found.packed else 0.0,
            "waited_s": self.waited,
        }

    def lines(self) -> list[str]:
        """In words."""
        told = self.to_dict()
        how = "share sequences" if told["packed"] else "have a sequence each, with padding"
        lengths = f"{told['mean_length']:.4g} tokens in the mean (of the mean token {told['token_length']:.4g})"
        useful = f"{percent(told['useful_share'])} of the tokens are no padding"
        rate = quantity(told["useful_tokens_per_s"], "token/s")
        found = [f"documents of {lengths} {how}: {told['documents_per_step']:.4g} a step; {useful}, {rate} of them"]
        if told["packed"]:
            part = percent(told["waited_s"] / self.run.value("time"))
            found.append(f"the sequences with the most attention make the step {part} longer than the mean ones would")
        return found
