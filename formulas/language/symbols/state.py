"""The state of training: what optimizers, low-precision recipes and frameworks keep, and where they keep it."""

from __future__ import annotations

from ..dimension import BANDWIDTH, BYTE, RATE
from .entry import FRACTION, POSITIVE, ZERO_UP, add

master_bytes = add("format", "master_bytes", "w_{mw}", "Bytes of the master copy of a weight.", BYTE, ZERO_UP)
moment_bytes = add(
    "format", "moment_bytes", r"w_\mu", "Bytes of an element of a moment that the optimizer keeps.", BYTE, POSITIVE
)
block_scale_bytes = add(
    "format", "block_scale_bytes", "w_b", "Bytes of the scale of a block of an 8-bit moment.", BYTE, POSITIVE
)
optimizer_block = add("efficiency", "optimizer_block", "B_o", "Elements of an 8-bit moment that share a scale.")
newton_schulz_steps = add("efficiency", "newton_schulz_steps", "n_{ns}", "Newton-Schulz iterations of a Muon update.")
newton_schulz_bytes = add(
    "format", "newton_schulz_bytes", "w_{ns}", "Bytes of an element of a matrix that Muon iterates on.", BYTE, POSITIVE
)

product_input_bytes = add(
    "format",
    "product_input_bytes",
    "w_p",
    "Bytes of a factor of a linear layer's products in low precision, its scales included.",
    BYTE,
    POSITIVE,
)
weight_copies = add(
    "efficiency",
    "weight_copies",
    "n_c",
    "Low-precision copies that are kept of a linear layer's weight: by rows, and by columns.",
    domain=ZERO_UP,
)
cast_copies = add(
    "efficiency",
    "cast_copies",
    "n_y",
    "Low-precision copies that a cast of an activation or a gradient writes: by rows, and by columns.",
    domain=POSITIVE,
)
amax_passes = add(
    "efficiency",
    "amax_passes",
    "n_a",
    "Readings of a tensor for its largest magnitude before it is cast: 1 with current scales of a tensor, else 0.",
    domain=ZERO_UP,
)

num_recomputed_layers = add(
    "plan", "num_recomputed_layers", "L_{rec}", "Layers of each stage that are recomputed; the others keep everything."
)
offloaded_activations = add(
    "plan", "offloaded_activations", r"\phi_{a}", "Part of the layers' activations kept by the host.", domain=FRACTION
)
offloaded_optimizer = add(
    "plan", "offloaded_optimizer", r"\phi_{m}", "Part of the optimizer's state kept by the host.", domain=FRACTION
)
offloaded_weights = add(
    "plan", "offloaded_weights", r"\phi_{w}", "Part of the layers' weights kept by the host.", domain=FRACTION
)
offloaded_cache = add(
    "plan", "offloaded_cache", r"\phi_{kv}", "Part of the tokens' keys and values kept by the host.", domain=FRACTION
)
offloaded_experts = add(
    "plan", "offloaded_experts", r"\phi_{ex}", "Part of the routed experts kept by the host.", domain=FRACTION
)
overlap_offload = add(
    "plan",
    "overlap_offload",
    r"\phi_{h}",
    "Part of the transfers to and from the host that may run beside the work of the device or the host.",
    domain=FRACTION,
)
host_bandwidth = add(
    "device",
    "host_bandwidth",
    r"\beta_h",
    "Bandwidth of a device's link to its host, one direction.",
    BANDWIDTH,
    POSITIVE,
    "host",
)
nvme_bandwidth = add(
    "device",
    "nvme_bandwidth",
    r"\beta_{nv}",
    "A device's share of the bandwidth of its host's drives, reading or writing.",
    BANDWIDTH,
    POSITIVE,
    "nvme",
)
host_memory_bandwidth = add(
    "device",
    "host_memory_bandwidth",
    r"\beta_{hm}",
    "A device's share of the bandwidth of its host's memory.",
    BANDWIDTH,
    POSITIVE,
    "host",
)
host_matrix_rate = add(
    "device",
    "host_matrix_rate",
    "F_h",
    "A device's share of the rate at which its host's processors multiply matrices of experts.",
    RATE,
    POSITIVE,
    "host",
)
host_efficiency = add(
    "efficiency", "host_efficiency", r"\eta_h", "Sustained part of the bandwidth to the host.", domain=POSITIVE
)
nvme_efficiency = add(
    "efficiency",
    "nvme_efficiency",
    r"\eta_{nv}",
    "Sustained part of the bandwidth of the host's drives.",
    domain=POSITIVE,
)
host_memory_efficiency = add(
    "efficiency",
    "host_memory_efficiency",
    r"\eta_{hm}",
    "Sustained part of the bandwidth of the host's memory.",
    domain=POSITIVE,
)

fragmentation = add(
    "efficiency",
    "fragmentation",
    r"\xi",
    "Memory that the allocator loses between blocks, as a part of the activations.",
    domain=FRACTION,
)
context_bytes = add(
    "efficiency", "context_bytes", "W_{ctx}", "Memory that the driver holds for its context on a device.", BYTE, ZERO_UP
)
collective_buffer_bytes = add(
    "efficiency",
    "collective_buffer_bytes",
    "W_n",
    "Memory that the library of collectives holds for its buffers; in training, of one communicator.",
    BYTE,
    ZERO_UP,
)
library_bytes = add(
    "efficiency",
    "library_bytes",
    "W_{lib}",
    "Memory that libraries of products hold as workspaces, whatever they compute.",
    BYTE,
    ZERO_UP,
)
loss_working_bytes = add(
    "format",
    "loss_working_bytes",
    "w_{ls}",
    "Bytes for each logit that the loss needs at its peak beside what is kept of the logits.",
    BYTE,
    POSITIVE,
)

communicators = add("formal", "communicators", "n_{com}", "Communicators of a device that are in use.", domain=ZERO_UP)
stage_number = add("formal", "stage_number", "i", "Number of a stage of a pipeline, the first is 1.")
layers_in_front = add("formal", "layers_in_front", "l_f", "Layers of a model from its first on.")
layers_before = add("formal", "layers_before", "l_b", "Layers of a model before those of a stage.", domain=ZERO_UP)
held_layers = add("formal", "held_layers", "l_h", "Layers of a stage.")
longer_chunks = add("formal", "longer_chunks", "v_{+}", "Chunks of a device that have one more layer.", domain=ZERO_UP)
chunk_layers = add("formal", "chunk_layers", "l_c", "Layers of a chunk of an interleaved pipeline.")
factors = add("formal", "factors", "n_r", "Row and column statistics of factored moments on one device.")
"""Their number is that of rows and columns of the matrices, and of elements of vectors."""
