"""Rows of `serving.csv`: mean time to the first token and of each later one of a server with requests in flight."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..evaluation.causes import FIRST_TOKEN, TOKEN
from ..infer.stack import Stack
from ..models.catalogue import CATALOGUE
from ..models.config_files import read_object
from ..models.draft_heads import own_head
from ..models.model import Model, make_model
from ..plans.plan import Plan
from ..systems.system import System
from . import serving_definitions as known
from .case import Case, LeftOut
from .rows import Columns

if TYPE_CHECKING:
    from ..serve.apart import Apart
    from ..serve.bursts import FiniteRun
    from ..serve.serving import Serving
    from .case import Expressed
    from .rows import TableRow

DEGREES = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
COLUMNS = Columns(
    required=("backend", "model_path", "system", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms"),
    optional=(
        *("use", "id", "silicon_data_source", "backend_version", "precision", "mode", "batch_size", *DEGREES),
        *("gemm_quant_mode", "moe_quant_mode", "prefill_num_workers", "decode_num_workers"),
        *(f"{pool}_{name}" for pool in ("prefill", "decode") for name in ("batch_size", *DEGREES)),
    ),
)
SOURCES = {"prefill_s": "serving ttft", "time_per_token_s": "serving tpot"}
"""What is compared -> the family that its errors are told in."""
CLASSES = ((0, "1 to 8"), (9, "9 to 32"), (33, "33 to 128"), (129, "above 128"))
"""Least concurrency of a class, and its name."""
NO_ROOM = "not one request fits the memory of the devices"
CALIBRATION = "a row of use = calibration, by which constants of profiles were set"
CONCURRENCY = re.compile(r"concurrency=(\d+)")
ENGINE_TOKENS = re.compile(r"_tp(\d+)_(?:\d+_)?ep(\d+)_")
"""Degrees in an id as the server was given them."""


@dataclass(frozen=True)
class Layout:
    """How a pool is laid out: ranks of a tensor-parallel group, groups, and ranks that whole experts are dealt to."""

    tp: int
    replicas: int
    ep: int


@dataclass(frozen=True)
class ServedRow:
    """A row as its server was asked.

    Attributes:
        model: name in the catalogue.
        system: name in the catalogue.
        stack: the profile.
        precision: of the plan.
        nvfp4: the checkpoint is NVIDIA's in NVFP4, with attention in 16 bits.
        tp: ranks of a tensor-parallel group.
        ep: ranks that whole experts are dealt to.
        prompt: mean tokens.
        generate: mean tokens.
        ratio: half the spread of lengths over their mean.
        concurrency: requests in flight.
        requests: of the whole run.
        script: options of the server.
        utilization: part of the memory that it takes.
        replicas: groups, of the pool that decodes where there are two.
        prefill: the layout of a pool that prefills; None where one does both.
    """

    model: str
    system: str
    stack: str
    precision: str | None
    nvfp4: bool
    tp: int
    ep: int
    prompt: int
    generate: int
    ratio: float
    concurrency: int
    requests: int
    script: known.Script
    utilization: float
    replicas: int = 1
    prefill: Layout | None = None


def express(row: TableRow) -> list[Expressed]:
    """The cases of a row: the time to the first token, and that of each later one.

    Raises:
        InputError: a cell names something unknown.
    """
    if row.text("use") == "calibration":
        return [LeftOut(source, row.id, CALIBRATION) for source in SOURCES.values()]
    try:
        asked = asked_of(row)
    except InputError as error:
        if type(error) is not InputError:
            raise
        return [LeftOut(source, row.id, str(error)) for source in SOURCES.values()]
    labels = {name: row.text(name) for name in ("model_path", "system", "backend", "precision")}
    labels |= {"model": asked.model, "software": asked.stack, "concurrency": class_of(asked.concurrency)}
    labels |= {"use": row.text("use")}
    told = f"{row.id}: {asked.stack}, {asked.model}, {asked.system}, tp{asked.tp} ep{asked.ep}, "
    told += f"{asked.replicas} replicas, " if asked.replicas > 1 else ""
    told += "two pools, " if asked.prefill is not None else ""
    told += f"{asked.concurrency} in flight"
    found: list[Expressed] = []
    for quantity, column in (("prefill_s", "silicon_ttft_ms"), ("time_per_token_s", "silicon_tpot_ms")):
        measured = row.number(column)
        if not measured:
            found.append(LeftOut(SOURCES[quantity], row.id, "the row gives no number"))
            continue

        def read(_: object, quantity: str = quantity) -> float:
            first, later = times_of(asked)
            return first if quantity == "prefill_s" else later

        answer = (SOURCES[quantity], told, quantity, measured / 1e3, lambda: serving_of(asked).run, read, labels)
        found.append(Case(*answer, kind=FIRST_TOKEN if quantity == "prefill_s" else TOKEN))
    return found


def class_of(concurrency: int) -> str:
    """The class of a number of requests in flight.

    >>> class_of(64)
    '33 to 128'
    """
    return [name for least, name in CLASSES if concurrency >= least][-1]


def asked_of(row: TableRow) -> ServedRow:
    """What the server of a row was asked.

    Raises:
        InputError: it cannot be expressed, with a reason that names no row.
    """
    model = known.known_as(row, "model_path", known.MODELS)
    system = known.known_as(row, "system", known.SYSTEMS)
    stack = known.known_as(row, "backend", known.STACKS)
    for untold in known.UNTOLD:
        if untold.holds(row, model):
            raise InputError(untold.reason)
    if row.text("mode") == "disagg":
        script = known.POOLS
        prefill, decode = (_pool(row, name) for name in ("prefill", "decode"))
    else:
        script = known.script_of(row, model)
        prefill, decode = None, _layout(row, one_group=script.one_group)
    prompt, generate = row.whole("isl"), row.whole("osl")
    concurrency = concurrency_of(row)
    if concurrency is None or prompt is None or generate is None:
        raise InputError("the requests in flight or their lengths are not said")
    lowest, waves = known.SPREAD if known.of_inferencex(row) else known.ALIKE
    ratio = (1 - lowest) / (1 + lowest)
    if not ratio and not Stack.load(stack).apart:
        ratio = known.OUT_OF_STEP
    written = known.known_as(row, "precision", known.PRECISIONS)
    return ServedRow(
        model,
        system,
        stack,
        precision_of(row, model, written),
        written == "fp4" and model in known.NVFP4_KEPT,
        decode.tp,
        decode.ep,
        round(prompt * (1 + lowest) / 2),
        round(generate * (1 + lowest) / 2),
        ratio,
        concurrency,
        waves * concurrency,
        script,
        script.utilization or known.UTILIZATION[row.text("backend")],
        decode.replicas,
        prefill,
    )


def concurrency_of(row: TableRow) -> int | None:
    """Requests in flight at all replicas; None where the row does not say.

    Rows with several replicas, and those of two pools, have them in the column that says where they are from.
    """
    told = CONCURRENCY.search(row.text("silicon_data_source"))
    replicas = _degree(row, "attention_dp_size")
    if told and (replicas > 1 or row.text("mode") == "disagg"):
        return int(told[1])
    each = row.whole("batch_size")
    return None if each is None else each * replicas


def _pool(row: TableRow, pool: str) -> Layout:
    """One of two pools: as many instances as there are workers, each of so many replicas of attention.

    Raises:
        InputError: the number of instances is not said.
    """
    workers = row.whole(f"{pool}_num_workers")
    if workers is None:
        raise InputError("two pools, of which the row does not say how many instances they have")
    tp, replicas, ep = (_degree(row, f"{pool}_{name}") for name in ("tp_size", "attention_dp_size", "moe_ep_size"))
    return Layout(tp, replicas * workers, ep)


def _layout(row: TableRow, *, one_group: bool) -> Layout:
    """The layout of a server that prefills and decodes.

    In rows of InferenceX with replicas of attention tp_size x attention_dp_size is the square of the devices, each of
    which is a replica.

    Raises:
        InputError: as `degrees_of`, or no number of devices has that square.
    """
    replicas = _degree(row, "attention_dp_size")
    if replicas == 1:
        tp, ep = degrees_of(row)
        return Layout(tp, 1, ep)
    tp, ep = _degree(row, "tp_size"), _degree(row, "moe_ep_size")
    if not known.of_inferencex(row):
        return Layout(tp, replicas, ep)
    devices = math.isqrt(tp * replicas)
    if devices**2 != tp * replicas:
        raise InputError(f"tp_size and attention_dp_size: found {tp} and {replicas}, expected devices told twice")
    return Layout(devices, 1, 1) if one_group else Layout(1, devices, devices)


def precision_of(row: TableRow, model: str, written: str | None) -> str | None:
    """The precision of a row's plan; None: as its checkpoint stores it."""
    if (model in known.AS_STORED and written != "fp4") or model == "gpt-oss-120b":
        return None
    if written == "fp4" and model in known.NVFP4_KEPT:
        return None
    if written == "fp8" and (model in known.BLOCKWISE or row.text("gemm_quant_mode") == "fp8_block"):
        return "fp8-block"
    if written is None and model in known.BLOCKWISE:
        return "bf16"
    return written


def degrees_of(row: TableRow) -> tuple[int, int]:
    """Ranks of the tensor-parallel group and of the experts.

    Some rows give the product of the group's ranks and the experts' for the former: the id has both as the server got
    them.

    Raises:
        InputError: the group has more devices than the system's node or domain that one engine serves in these tables.
    """
    tp, ep = _degree(row, "tp_size"), _degree(row, "moe_ep_size")
    given = ENGINE_TOKENS.search(row.id)
    if given and tp == int(given[1]) * int(given[2]):
        tp, ep = int(given[1]), int(given[2])
    if tp > 8:
        raise InputError("the devices of several engines are given as those of one")
    return tp, ep


def _degree(row: TableRow, column: str) -> int:
    """A parallel degree; 1 where the cell is empty, or 0 as some rows have it."""
    value = row.number(column)
    return max(1, int(value or 1))


@lru_cache(maxsize=64)
def _model(name: str, nvfp4: bool) -> Model:
    if not nvfp4:
        return Model.load(name)
    return make_model(f"{name}-nvfp4", str(CATALOGUE.path(name)), nvfp4_config(name), f"{name}-nvfp4")


def nvfp4_config(name: str) -> dict[str, Any]:
    """The configuration of NVIDIA's checkpoint in NVFP4 of a model of the catalogue."""
    data = dict(read_object(CATALOGUE.path(name)))
    place = "text_config" if "quantization_config" in data.get("text_config", {}) else ""
    if place:
        data[place] = {**data[place], "quantization_config": known.ATTENTION_KEPT}
    else:
        data["quantization_config"] = known.ATTENTION_KEPT
    return data


@lru_cache(maxsize=512)
def serving_of(asked: ServedRow, acceptance: float = known.DRAFT_ACCEPTANCE) -> Serving:
    """The server of a row; the acceptance is that of tokens that its script drafts.

    Raises:
        InputError: an impossible plan, or a format that the device does not run.
    """
    from ..serve.request import ServingRequest
    from ..serve.serving import Serving
    from ..serve.workload import Workload

    nominal = round(asked.prompt * (1 + asked.ratio))
    chunk = asked.script.chunk_prompts * nominal or asked.script.chunk or None
    plan = Plan(tp=asked.tp, ep=asked.ep, dp=asked.replicas, precision=asked.precision)
    workload = Workload(prompt_spread=asked.ratio, generate_spread=asked.ratio)
    model, drafts = _model(asked.model, asked.nvfp4), asked.script.drafts
    request = ServingRequest(asked.prompt, asked.generate, chunk=chunk, workload=workload)
    if drafts:
        request = replace(request, acceptance=acceptance, draft_length=drafts)
    return Serving(
        model,
        System.load(asked.system),
        plan,
        request,
        stack=asked.stack,
        kv_precision=asked.script.cache,
        draft=own_head(model) if drafts else None,
    )


def limit_of(asked: ServedRow, serving: Serving) -> int:
    """Sequences that a replica runs at once: those whose mean cache fits."""
    room = serving.room(asked.script.drafts, memory_utilization=asked.utilization)
    return int(room.budget() / (room.sequence - serving.cache_bytes("sequence") + serving.cache_bytes("mean")))


@lru_cache(maxsize=2048)
def loop_of(asked: ServedRow, acceptance: float = known.DRAFT_ACCEPTANCE) -> FiniteRun:
    """The run of a row's requests.

    Raises:
        InputError: not one request fits.
    """
    from ..serve.bursts import finite_run
    from ..serve.closed import ClosedLoop
    from ..serve.steady import Steady

    serving, drafts = serving_of(asked, acceptance), asked.script.drafts
    limit = limit_of(asked, serving)
    if limit < 1:
        raise InputError(NO_ROOM)
    engine = serving.engine(drafts)
    packed = serving.chunk_prompts if engine.mix is None else engine.mix.packed
    engine = replace(engine, limit=limit, chunk_prompts=max(1, min(packed, limit)))
    each = max(1.0, asked.concurrency / asked.replicas)
    return finite_run(ClosedLoop(Steady(engine), each), each * asked.requests / asked.concurrency)


def pools_of(asked: ServedRow) -> Apart:
    """Both pools of a row that has two.

    Raises:
        InputError: a format that the device does not run.
    """
    from ..serve.apart import Apart

    layout = asked.prefill
    assert layout is not None
    decode = replace(asked, prefill=None)
    prefill = replace(decode, tp=layout.tp, replicas=layout.replicas, ep=layout.ep)
    return Apart(serving_of(prefill), serving_of(decode))


@lru_cache(maxsize=512)
def _times_of_pools(asked: ServedRow) -> tuple[float, float]:
    from ..serve.pools_in_flight import pools_in_flight

    found = pools_in_flight(pools_of(asked), asked.concurrency, asked.requests)
    if found is None:
        raise InputError(NO_ROOM)
    return found.first_token, found.token


def times_of(asked: ServedRow, acceptance: float = known.DRAFT_ACCEPTANCE) -> tuple[float, float]:
    """Mean seconds to the first token and of each later one.

    A request waits for the scheduler to look for it as long as some iterations of those that decode take.
    """
    if asked.prefill is not None:
        return _times_of_pools(asked)
    run = loop_of(asked, acceptance)
    polls = [value for least, value in asked.script.polls if asked.concurrency >= least]
    wait = (polls[-1] if polls else 0.0) * run.state.iteration
    tokens = serving_of(asked, acceptance).tokens_of_a_step(asked.script.drafts)
    return run.first_token + wait, run.state.iteration / tokens
