"""The questions that symperf answers: `training`, `inference`, `serving`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common.numbers import plain_arguments
from .plans.arguments import load_model, load_plan, load_system

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from .infer.adapter_slots import Adapters
    from .models.model import Model
    from .plans.plan import Plan
    from .runs.inference_run import InferenceRun
    from .runs.training_run import Run
    from .runs.tuning import Tuning
    from .serve.serving import Serving
    from .systems.system import System


@plain_arguments
def training(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    batch: int,
    sequence: int,
    stack: str | os.PathLike[str] | None = None,
    images: Sequence[str] = (),
    frames: int = 1,
    sounds: Sequence[str] = (),
    **values: Any,
) -> Run:
    """Cost of a training step of `batch` sequences of `sequence` tokens.

    Args:
        model: what to train, or the name or path that `Model.load` takes.
        system: what to train on, or the name or path that `System.load` takes.
        plan: how the work is laid out; by default one device.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        stack: name of a training software's profile (`symperf list stacks`), or the path of one; by default the best
            published kernels of the device.
        images: of each sequence, as texts "COUNTxHEIGHTxWIDTH" in pixels; their tokens are among the sequence's.
        frames: of each of the images, as of a video; without images, spectra of 10 ms of one recording.
        sounds: recordings of each sequence, as texts "COUNTxFRAMES" of 10 ms, whose tokens are among the sequence's.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        A `Run`: closed forms, and the values that their symbols take.

    Raises:
        InputError: an impossible plan, a system that lacks what the plan needs, or an unknown symbol.
    """
    from .models.sounds import parse_media
    from .runs.training_run import Run as _Run

    work: dict[str, Any] = {"batch": batch, "sequence": sequence, "stack": stack}
    work["images"] = parse_media(images, frames, sounds)
    return _Run(load_model(model), load_system(system), load_plan(plan), **work, values=values)


@plain_arguments
def tuning(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    method: str,
    batch: int,
    sequence: int,
    stack: str | os.PathLike[str] | None = None,
    teacher: Model | str | os.PathLike[str] | None = None,
    reward_model: Model | str | os.PathLike[str] | None = None,
    prompt: int | None = None,
    group: int | None = None,
    rollout: str | None = None,
    reference: bool = True,
    **values: Any,
) -> Tuning:
    """Cost of a step of a method of fine-tuning, which may run several models.

    Args:
        model: the policy, or the name or path that `Model.load` takes.
        system: what all run on, or the name or path that `System.load` takes.
        plan: how the policy is laid out; by default one device.
        method: sft, dpo, reward, distill, grpo or ppo, as TRL and verl name them.
        batch: examples: sequences, pairs of dpo and reward, prompts of grpo and ppo.
        sequence: tokens of a sequence, with a rollout of prompt and answer.
        stack: name or path of a training software's profile.
        teacher: of distillation.
        reward_model: of ppo; by default one like the policy.
        prompt: tokens of each prompt of grpo and ppo; the rest is generated.
        group: answers to a prompt; by default 8 of grpo.
        rollout: what differs while answers are generated, as "plan: tp=2 dp=4, stack: vllm".
        reference: whether the loss reads a frozen reference.
        values: other values of symbols.

    Returns:
        A `Tuning`: phases with seconds and shares, and the memory of all models.

    Raises:
        InputError: an unknown method, what it does not read or lacks, or what a run refuses.
    """
    from .runs.tuning import Tuning as _Tuning

    others: dict[str, Any] = {
        name: None if each is None else load_model(each)
        for name, each in (("teacher", teacher), ("reward_model", reward_model))
    }
    work: dict[str, Any] = {"method": method, "batch": batch, "sequence": sequence, "stack": stack}
    work |= {"prompt": prompt, "group": group, "rollout": rollout, "reference": reference}
    return _Tuning(load_model(model), load_system(system), load_plan(plan), **work, **others, values=values)


@plain_arguments
def inference(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    batch: int,
    prompt: int,
    generate: int,
    stack: str | os.PathLike[str] | None = None,
    kv_precision: str | None = None,
    images: Sequence[str] = (),
    frames: int = 1,
    sounds: Sequence[str] = (),
    **values: Any,
) -> InferenceRun:
    """Cost of `batch` prompts of `prompt` tokens, and of `generate` tokens generated for each.

    Args:
        model: what runs, or the name or path that `Model.load` takes.
        system: what it runs on, or the name or path that `System.load` takes.
        plan: how the work is laid out; by default one device.
        batch: sequences, over all replicas.
        prompt: tokens of each prompt.
        generate: tokens generated for each; prefill yields the first, a decode step each other one.
        stack: name of a serving software's profile (`symperf list stacks`), or the path of one.
        kv_precision: format of the key-value cache; by default 16 bits.
        images: of each sequence, as texts "COUNTxHEIGHTxWIDTH" in pixels; their tokens join the prompt's, and
            `.encoding` tells what their encoder takes, which time and memory include.
        frames: of each of the images, as of a video; without images, spectra of 10 ms of one recording.
        sounds: recordings of each sequence, as texts "COUNTxFRAMES" of 10 ms, whose tokens join the prompt's.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        An `InferenceRun`: closed forms, and the values that their symbols take.

    Raises:
        InputError: an impossible plan, a system that lacks what the plan needs, or an unknown name.
    """
    from .infer.stack import DEFAULT
    from .models.sounds import parse_media
    from .runs.inference_run import InferenceRun as _Run

    return _Run(
        load_model(model),
        load_system(system),
        load_plan(plan),
        batch=batch,
        prompt=prompt,
        generate=generate,
        stack=stack or DEFAULT,
        kv_precision=kv_precision,
        images=parse_media(images, frames, sounds),
        values=values,
    )


@plain_arguments
def serving(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    prompt: int | None = None,
    generate: int | None = None,
    ttft: float | None = None,
    tpot: float | None = None,
    load: float | None = None,
    chunk: int | None = None,
    draft: Model | str | os.PathLike[str] | None = None,
    speculate: str | None = None,
    adapters: Adapters | None = None,
    acceptance: float | tuple[float, ...] | None = None,
    draft_length: int | None = None,
    concurrency: int | None = None,
    requests: int | None = None,
    burst: int | None = None,
    max_num_seqs: int | None = None,
    prompt_spread: float = 0.0,
    generate_spread: float = 0.0,
    max_generate: int | None = None,
    prefix: int = 0,
    turns: int = 1,
    hit_rate: float | None = None,
    trace: str | os.PathLike[str] | None = None,
    stack: str | os.PathLike[str] | None = None,
    kv_precision: str | None = None,
    images: Sequence[str] = (),
    frames: int = 1,
    sounds: Sequence[str] = (),
    prefill: str | None = None,
    **values: Any,
) -> Serving:
    """Continuous batching of requests that arrive at random, or so many at a time, in a steady state.

    Args:
        model: what runs, or the name or path that `Model.load` takes.
        system: what it runs on, or the name or path that `System.load` takes.
        plan: how a replica is laid out, and how many there are (`dp`); by default one device.
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        ttft: longest mean time to the first token, in seconds.
        tpot: longest mean time of each later token, in seconds.
        load: requests a second, at all replicas; without it the largest within the targets is the answer.
        chunk: prompt tokens that an iteration may process.
        draft: a draft model for speculative decoding, on the same devices; as `model`, or the file of a head.
        speculate: "mtp" (the model's own head), "eagle" or "eagle3" (the file of a head), "draft"; by default what
            `draft` is.
        adapters: of requests, which linear layers have beside them (`infer.adapter_slots.adapters_of`).
        acceptance: probability that a drafted token is accepted once those before it are, or one for each position.
        draft_length: tokens drafted for each step; by default the best for a request alone.
        concurrency: requests in flight, each replaced as it ends, instead of a load.
        requests: of the whole run of them, which begins with a burst, as benchmarks do; without it the loop is endless.
        burst: requests that arrive at once, instead of a load.
        max_num_seqs: sequences that a replica may run at once; by default those of the software, 0: all that fit.
        prompt_spread: r of the prompts' lengths, which are uniform over (1 - r) to (1 + r) times `prompt`.
        generate_spread: likewise of what is generated.
        max_generate: tokens generated for which memory is reserved in advance; by default none is.
        prefix: first tokens of each prompt that all requests share, and find in the cache.
        turns: requests of a conversation, each of which sends all that came before it again, and finds it in the cache.
        hit_rate: part of the requests that do find it; by default all.
        trace: path of recorded requests, JSON lines of arrival, input and output, instead of lengths and a load;
            `.replayed` is what they measure, event by event.
        stack: name of a serving software's profile (`symperf list stacks`), or the path of one.
        kv_precision: format of the key-value cache; by default 16 bits.
        images: of each request, as texts "COUNTxHEIGHTxWIDTH" in pixels; their tokens join the prompt's, and their
            encoder runs in the iterations that prefill.
        frames: of each of the images, as of a video; without images, spectra of 10 ms of one recording.
        sounds: recordings of each request, as texts "COUNTxFRAMES" of 10 ms.
        prefill: how a pool that only prefills differs from `system` and `plan`, which then only decode:
            "system: h100-sxm, plan: tp=4 dp=2"; `.apart` tells of both.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        A `Serving`: `.answer` at the load, `.largest`, `.curve`, `.pools`, `.apart`, `.speculation()`.

    Raises:
        InputError: an impossible plan, an unknown name, or a value out of range.
    """
    from .infer.stack import DEFAULT
    from .models.draft_heads import draft_of
    from .models.sounds import parse_media
    from .serve.question import build_request
    from .serve.serving import Serving as _Serving

    work = {"prompt": prompt, "generate": generate, "ttft": ttft, "tpot": tpot, "load": load, "chunk": chunk}
    arrivals = {"concurrency": concurrency, "requests": requests, "burst": burst, "max_num_seqs": max_num_seqs}
    lengths = {"prompt_spread": prompt_spread, "generate_spread": generate_spread, "max_generate": max_generate}
    cached = {"prefix": prefix, "turns": turns, "hit_rate": hit_rate}
    asked, recorded = build_request(
        work | {"acceptance": acceptance, "draft_length": draft_length},
        arrivals | lengths | cached,
        trace,
        parse_media(images, frames, sounds),
    )
    target = load_model(model)
    return _Serving(
        target,
        load_system(system),
        load_plan(plan),
        asked,
        draft=draft_of(target, draft, speculate),
        trace=recorded,
        adapters=adapters,
        stack=stack or DEFAULT,
        kv_precision=kv_precision,
        values=values,
        prefill=prefill,
    )
