"""Images, videos and recordings of requests: when their encoder runs, what it adds to iterations, and its memory.

vLLM and SGLang run the encoder of an image in the iteration that processes the first tokens of the image, before the
language model's pass, on the same devices (vLLM, `Scheduler._try_schedule_encoder_inputs` and
`GPUModelRunner._execute_mm_encoder`; SGLang, `general_mm_embed_routine`). So its time lengthens that iteration for
every sequence that decodes in it. A prompt cut into K chunks has its images in all of them: on the mean a chunk takes
1 / K of the encoder's pass over the prompt's images; whole prompts of one iteration are encoded together. Of a
pipeline the first stage encodes, for each group in turn.

vLLM reserves memory for as many images as the tokens of an iteration hold, one at least (`MultiModalBudget`).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..plans.encoders import encode
from ..runs.encoding import Encoding
from .steady import CLOSE

if TYPE_CHECKING:
    from ..models.sounds import Sound
    from ..models.towers import Image
    from ..runs.inference_run import InferenceRun
    from .engine import Times


class PromptImages:
    """The encoder's passes over the images of the prompts of an iteration.

    Args:
        run: an inference of one request with images at each replica.
        chunk: prompt tokens that an iteration may process.
    """

    def __init__(self, run: InferenceRun, chunk: int) -> None:
        assert run.encoding is not None
        self.run, self.chunk, self.one = run, chunk, run.encoding
        self._seconds: dict[int, float] = {}

    def seconds(self, prompts: float) -> float:
        """Seconds to encode the images of so many prompts.

        Those of a part of a prompt take that part of its time; between whole numbers it is the mean of those beside.
        """
        low = math.floor(prompts + CLOSE)
        part = prompts - low
        if low < 1:
            return prompts * self._of_whole(1)
        found = self._of_whole(low)
        return found if abs(part) < CLOSE else found + part * (self._of_whole(low + 1) - found)

    def _of_whole(self, prompts: int) -> float:
        if prompts not in self._seconds:
            run = self.run
            self._seconds[prompts] = Encoding(run, run.images, prompts * run.plan.dp).time_s
        return self._seconds[prompts]

    @property
    def weight_bytes(self) -> float:
        """Bytes of the encoder's weights on a device of the first stage."""
        return self.one.weight_bytes

    @property
    def activation_bytes(self) -> float:
        """Bytes that the encoder needs for the images of an iteration: the most of any size."""
        return max(self._budgeted(image).activation_bytes for image in self.run.images)

    def _budgeted(self, image: Image | Sound) -> Encoding:
        tokens = max(1, encode(self.run.model, image).tokens)
        together = dataclasses.replace(image, count=max(1, self.chunk // tokens))
        return Encoding(self.run, (together,), self.run.plan.dp)


@dataclass(frozen=True)
class TimesWithImages:
    """Iterations of which those that prefill encode images first.

    Attributes:
        times: without images.
        images: of the prompts.
        prompt: tokens of a prompt, with those of its images.
        groups: of the pipeline.
    """

    times: Times
    images: PromptImages
    prompt: float
    groups: int = 1

    def decode(self, sequences: float) -> float:
        """An iteration that only decodes."""
        return self.times.decode(sequences)

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        """One that prefills too: the first stage encodes for each group in flight."""
        return self.times.mixed(sequences, tokens, ranks) + self.encode(sequences, tokens)

    def prefill(self, tokens: float, ranks: float = 1.0) -> float:
        """One of prompt tokens alone."""
        return self.times.prefill(tokens, ranks) + self.encode(0.0, tokens)

    def encode(self, sequences: float, tokens: float) -> float:
        """Seconds of the encoder in an iteration."""
        groups = min(float(self.groups), max(1.0, sequences))
        return groups * self.images.seconds(tokens / self.prompt)
