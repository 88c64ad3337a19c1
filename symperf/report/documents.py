"""What the lengths of documents make of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..train.padded_batches import PaddedBatches
from .scaled import gibibytes, percent, quantity

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
        if isinstance(self.documents, PaddedBatches):
            return self.run.value("time") - self.run.value_at("time", {"sequence": self.documents.mean_width})
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
            "useful_tokens_per_s": self.run.batch * found.a_sequence * found.mean / self.run.value("time"),
            "attention_variation": found.variation if found.packed else 0.0,
            "waited_s": self.waited,
            **(self.padded(found) if isinstance(found, PaddedBatches) else {}),
        }

    def padded(self, found: PaddedBatches) -> dict[str, Any]:
        """What padding to the longest of a micro-batch makes, and what the one with the longest of all needs."""
        needed = self.run.value_at("reserved", {"sequence": float(found.longest)})
        return {
            "mean_width": found.mean_width,
            "slowest_width": found.slowest_width,
            "longest_reserved_bytes": needed,
            "longest_fits": needed <= self.run.value("capacity_bytes"),
        }

    def lines(self) -> list[str]:
        """In words."""
        told = self.to_dict()
        how = "share sequences" if told["packed"] else "have a sequence each, with padding"
        how += " to the longest of its micro-batch" if "mean_width" in told else ""
        lengths = f"{told['mean_length']:.4g} tokens in the mean (of the mean token {told['token_length']:.4g})"
        useful = f"{percent(told['useful_share'])} of the tokens are no padding"
        rate = quantity(told["useful_tokens_per_s"], "token/s")
        found = [f"documents of {lengths} {how}: {told['documents_per_step']:.4g} a step; {useful}, {rate} of them"]
        if told["packed"]:
            part = percent(told["waited_s"] / self.run.value("time"))
            found.append(f"the sequences with the most attention make the step {part} longer than the mean ones would")
        if "mean_width" in told:
            found += self.padded_lines(told)
        return found

    def padded_lines(self, told: dict[str, Any]) -> list[str]:
        """In words, of padding to the longest of a micro-batch."""
        part = percent(told["waited_s"] / self.run.value("time"))
        widths = f"{told['mean_width']:.4g} tokens wide in the mean, {told['slowest_width']:.4g} of the slowest replica"
        needed = gibibytes(told["longest_reserved_bytes"])
        verdict = "fits" if told["longest_fits"] else "does not fit"
        return [
            f"micro-batches are {widths}, which makes the step {part} longer; times and memory above are of these",
            f"a micro-batch with the longest document, {told['longest']} tokens, reserves {needed}: {verdict}",
        ]
