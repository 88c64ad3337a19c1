"""The chapters of the book: their subjects, pages and introductions.

An introduction is a file of `chapters/`: sections under `#` headings; paragraphs of prose with names between backticks
(links), mathematics between dollar signs in names of the vocabulary, `[@key]` for a source; and lines `= NAME`, which
show the equation of a formula of the registry.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "chapters"
NOTATION = "notation"
"""The name of the first chapter, which has no formulas."""


@dataclass(frozen=True)
class Chapter:
    """One chapter: its name, its title, and its pages by module name, each with its title."""

    name: str
    title: str
    pages: dict[str, str]


CHAPTERS = (
    Chapter(
        "compute",
        "Rooflines and matrix products",
        {
            "roofline": "Roofline",
            "matmul": "Matrix products",
            "tiles": "Tiles of matrix products",
            "thin_matmul": "Thin matrix products",
            "looped_matmul": "Products of measured devices",
            "dependent_launch": "Starts hidden in recorded graphs",
            "low_precision": "Low precision",
            "adapters": "Adapters of requests",
            "trained_adapters": "Adapters that are trained",
        },
    ),
    Chapter(
        "streams",
        "Kernels bound by memory",
        {
            "elementwise": "Element-wise kernels",
            "wide_stream": "A residual stream in 32 bits",
            "eager": "Operations that run one by one",
            "embedding": "Embedding and loss",
            "losses": "Fused and cut losses",
            "optimizers": "Optimizers",
        },
    ),
    Chapter(
        "attention",
        "Attention",
        {
            "attention": "Attention core",
            "attention_blocks": "Attention in blocks of queries",
            "windows": "Windows of attention",
            "documents": "Documents that share a sequence",
            "disentangled_attention": "Disentangled attention",
            "latent_attention": "Latent attention",
            "sparse_selection": "Selection of keys",
            "selected_attention": "Attention to selected keys",
            "compressed_attention": "Compressed keys",
            "hyper_connections": "Hyper-connections",
            "alternating_updates": "Alternating updates",
            "attention_residuals": "Attention residuals",
        },
    ),
    Chapter(
        "experts",
        "Experts",
        {
            "moe": "Mixtures of experts",
            "grouped_experts": "Kernels of experts",
            "separate_experts": "Biases and limits of experts apart",
            "expert_formats": "Formats of what travels to experts",
            "expert_parallel": "Expert parallelism",
            "expert_exchange": "Exchanges of tokens",
            "expert_copies": "Copies of experts",
        },
    ),
    Chapter(
        "recurrent",
        "Recurrent and state-space layers",
        {
            "linear_attention": "Linear attention",
            "channel_decay": "Kimi Delta Attention",
            "lightning_attention": "Lightning attention",
            "gated_lru": "Gated linear recurrent units",
            "matrix_memory": "Matrix memories (xLSTM)",
            "wkv": "RWKV-7",
            "ssm": "State-space models",
            "scan": "Scans",
            "measured_scan": "Measured kernels of recurrent layers",
            "convolution": "Convolution",
            "recurrent_decode": "Decoding with recurrent layers",
        },
    ),
    Chapter(
        "collectives",
        "Collectives",
        {
            "tiers": "Tiers of the network",
            "domain": "Measured collectives of a domain",
            "mesh": "Meshes of links",
            "send": "Send and receive",
            "broadcast": "Broadcast",
            "gather": "All-gather and reduce-scatter",
            "all_reduce": "All-reduce",
            "pipelined": "Pipelined collectives",
            "all_to_all": "All-to-all",
            "in_network": "Reductions in the network",
            "switched": "All-reduce by switch or ring",
            "one_shot_two_shot": "One-shot and two-shot all-reduce",
            "call_overhead": "Overhead of calling a collective",
        },
    ),
    Chapter(
        "parallelism",
        "Sharding, sequences and many devices",
        {
            "sharding": "Sharded states",
            "module_sharding": "ZeRO-3 module by module",
            "context_parallel": "Context parallelism",
            "overheads": "Launches by the host and stragglers",
        },
    ),
    Chapter(
        "pipelines",
        "Pipelines",
        {
            "pipeline": "Schedules",
            "dealing": "Layers dealt to stages",
            "zero_bubble": "Zero-bubble pipelines",
            "dual_pipe": "Bidirectional pipelines",
            "unequal_stages": "Stages of different times",
            "unequal_chunks": "Virtual stages of different times",
        },
    ),
    Chapter(
        "memory",
        "Parameters and memory",
        {
            "parameters": "Parameters and FLOPs",
            "model_state": "Model state",
            "saved_activations": "Saved activations",
            "stage_memory": "Memory by stage",
            "reserved_memory": "Memory held beside tensors",
            "offload": "Offload to the host",
            "serving_memory": "What fits when serving",
        },
    ),
    Chapter(
        "generation",
        "Generation",
        {
            "decode": "Decoding",
            "decode_bounds": "Bounds of decoding",
            "cache_reads": "Reads of the cache",
            "split_decode": "Decoding with split contexts",
            "block_decode": "Decoding in blocks of keys",
            "speculative": "Speculative decoding",
        },
    ),
    Chapter(
        "serving",
        "Serving",
        {
            "serving": "Continuous batching",
            "queueing": "Queueing",
            "request_way": "The way of a request",
            "closed_loops": "Closed loops and bursts",
            "disaggregation": "Prefill and decode apart",
            "lockstep": "Replicas in lock step",
        },
    ),
    Chapter(
        "technology",
        "Technology",
        {"chip": "Chips", "voltage": "Voltage and frequency", "links": "Links and memory stacks"},
    ),
    Chapter("energy", "Energy, cost and carbon", {"energy": "Energy", "cost": "Cost", "carbon": "Carbon"}),
)
"""The chapters after the notation, in reading order."""
TITLES = {page: title for chapter in CHAPTERS for page, title in chapter.pages.items()}
"""Pages in reading order, with their titles."""
_OF_ROOM = {
    "kernels": "compute",
    "collectives": "collectives",
    "parallel": "parallelism",
    "generation": "generation",
    "memory": "memory",
    "technology": "technology",
}
"""Where a page goes that no chapter has yet, by the room of its module."""


@dataclass(frozen=True)
class Section:
    """A section of an introduction: its heading, and its paragraphs; one that is "= NAME" shows an equation."""

    heading: str
    paragraphs: tuple[str, ...]


def chapter_of(module: str) -> Chapter:
    """The chapter in which the page of a module stands.

    >>> chapter_of("symperf.formulas.kernels.moe").title, chapter_of("symperf.formulas.kernels.new").title
    ('Experts', 'Rooflines and matrix products')
    """
    room, page = module.rsplit(".", 2)[-2:]
    name = _OF_ROOM.get(room, CHAPTERS[0].name)
    found = next((chapter for chapter in CHAPTERS if page in chapter.pages), None)
    return found or next(chapter for chapter in CHAPTERS if chapter.name == name)


@functools.cache
def introduction(name: str) -> tuple[Section, ...]:
    """The introduction of a chapter, from its file."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = []
    for part in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        found.append(Section(heading, tuple(block.strip() for block in body.split("\n\n") if block.strip())))
    return tuple(found)


def names() -> list[str]:
    """Of all chapters, in reading order."""
    return [NOTATION, *(chapter.name for chapter in CHAPTERS)]


def cited(name: str) -> list[str]:
    """The keys of the sources that an introduction cites."""
    text = " ".join(paragraph for section in introduction(name) for paragraph in section.paragraphs)
    return re.findall(r"\[@([\w-]+)\]", text)
