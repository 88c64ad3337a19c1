"""Encoders of sound beside language models: what the keys of their `audio_config` mean, one entry per kind.

Sizes, biases and class defaults are those of transformers 5.24 (`modeling_qwen2_audio`, `_voxtral`, `_qwen2_5_omni`,
`_qwen3_omni_moe`, `_phi4_multimodal`), lengths those of their processors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configs import dropping, optional
from ..sounds import SoundGrid
from ..towers import Product
from .projectors import chain
from .tower_parts import HARMLESS, VIT_LAYERS, AudioFamily, family, sizes_of

if TYPE_CHECKING:
    from .tower_parts import Source

KEYS = """
    num_mel_bins max_source_positions n_window n_window_infer output_dim conv_chunksize downsample_hidden_size
    scale_embedding encoder_layerdrop layerdrop activation_dropout head_dim num_key_value_heads
"""
TAPS = 3
"""Of every convolution of these encoders."""

SIZES = sizes_of(
    optional("encoder_layers", "num_hidden_layers", absent=32),
    optional("d_model", "hidden_size", absent=1280),
    optional("encoder_attention_heads", "num_attention_heads", absent=20),
    optional("encoder_ffn_dim", "intermediate_size", absent=5120),
)
WHISPER = family(SIZES, VIT_LAYERS | {"key_bias": False}, harmless=(*HARMLESS, *KEYS.split()))


def mel(found: Source) -> int:
    """Bands of frequency of a spectrum."""
    return found.size("num_mel_bins", absent=128)


def positions(found: Source) -> int:
    """Of half a minute, the longest that Whisper's encoder reads."""
    return found.size("max_source_positions", absent=1500)


def whisper_stem(found: Source, *, learned: bool = True) -> tuple[list[Product], int]:
    """Two convolutions over time, the second at every other spectrum, and a table of positions."""
    width = found.width
    first = Product("convolution_1", TAPS * mel(found), width, True, "patches", times=2)
    table = positions(found) * width if learned else 0
    return [first, Product("convolution_2", TAPS * width, width, True, "patches")], table


def whisper_grid(found: Source, pool: int, *, filled: bool = False) -> SoundGrid:
    """Windows of half a minute, which are filled up; only their sound becomes tokens, or all of them."""
    window = 2 * positions(found)
    return SoundGrid(window, positions(found), pool=pool, filled=filled, longest=0 if filled else window)


def halved(count: int) -> int:
    """What a convolution leaves that steps over every other of so many."""
    return -(-count // 2)


def omni_window(found: Source, absent: int) -> int:
    """Spectra of a window, twice what the file says."""
    return 2 * found.size("n_window", absent=absent)


def omni3_cells(found: Source) -> list[tuple[int, int]]:
    """Bands and spectra of a window after each of three convolutions."""
    sizes = [(mel(found), omni_window(found, 50))]
    for _ in range(3):
        sizes.append((halved(sizes[-1][0]), halved(sizes[-1][1])))
    return sizes[1:]


def omni3_stem(found: Source) -> tuple[list[Product], int]:
    """Three convolutions over bands and time, and a product of all bands."""
    channels, cells = found.size("downsample_hidden_size", absent=480), omni3_cells(found)
    inputs = (1, channels, channels)
    found_products = [
        Product(f"convolution_{place}", TAPS**2 * before, channels, True, "windows", times=bands * spectra)
        for place, (before, (bands, spectra)) in enumerate(zip(inputs, cells, strict=True), 1)
    ]
    return [*found_products, Product("bands", channels * cells[-1][0], found.width, False, "patches")], 0


def omni3_grid(found: Source) -> SoundGrid:
    """Windows of a second, of which the layers join eight."""
    window = omni_window(found, 50)
    joined = max(1, found.size("n_window_infer", absent=800) // window)
    return SoundGrid(window, omni3_cells(found)[-1][1], halvings=3, joined=joined)


def output(found: Source) -> int:
    """Width of what the encoder gives."""
    return found.size("output_dim", absent=3584)


def conformer_bands(found: Source) -> list[int]:
    """Bands of a spectrum after each convolution that halves them and time.

    Raises:
        InputError: the halvings are no whole number.
    """
    times = found.size("time_reduction", absent=8)
    if times < 2 or times & (times - 1):
        found.vision.fail("time_reduction", "a power of two")
    sizes = [found.size("input_size", absent=80)]
    while times > 1:
        sizes.append(halved(sizes[-1]))
        times //= 2
    return sizes[1:]


def conformer_stem(found: Source) -> tuple[list[Product], int]:
    """Convolutions over bands and time, all but the first by channels and then of channels, and biases of distances."""
    channels, bands = found.size("nemo_conv_channels", absent=1024), conformer_bands(found)
    products = []
    for place, count in enumerate(bands, 1):
        rows = count * 2 ** (len(bands) - place)
        products.append(Product(f"convolution_{place}", TAPS**2, channels, True, "windows", times=rows))
        if place > 1:
            products.append(Product(f"convolution_{place}/channels", channels, channels, True, "windows", times=rows))
    products.append(Product("bands", channels * bands[-1], found.width, True, "patches"))
    sides = 1 if found.vision.flag("bias_symmetric", False) else 2
    distances = found.size("bias_max_distance", absent=1000) * sides * found.sizes["num_attention_heads"]
    inner, vectors = conformer_parts(found)
    return [*products, *inner], distances + vectors


def conformer_parts(found: Source) -> tuple[list[Product], int]:
    """What a layer has beside attention and its last MLP: an MLP before, and a convolution between two products.

    The gates, norms and sums are left out of the time.
    """
    width, inner, layers = found.width, found.sizes["intermediate_size"], found.sizes["num_layers"]
    gated = found.size("ext_pw_out_channel", absent=1024)
    spread = width * found.size("depthwise_multiplier", absent=1)
    kernel, between = found.size("kernel_size", absent=3), found.size("depthwise_separable_out_channel", absent=1024)
    if not gated == between == width:
        found.vision.fail("ext_pw_out_channel", f"{width} as the hidden size, and so depthwise_separable_out_channel")
    shapes = [("mlp/up", width, 2 * inner), ("mlp/down", inner, width), ("gate", width, 2 * gated)]
    shapes += [("taps", kernel, spread), ("channels", spread, between), ("output", width, gated)]
    products = [Product(f"layer/{name}", read, out, True, "patches", copies=layers) for name, read, out in shapes]
    # Three norms, and biases of the gate and of what it weighs.
    return products, layers * (3 * 2 * width + 2 * gated)


def conformer_grid(found: Source) -> SoundGrid:
    """A position for every few spectra, of which 500 at most see each other."""
    halvings = len(conformer_bands(found))
    pool = found.size("downsample_rate", absent=1)
    if pool != 1:
        found.vision.fail("downsample_rate", "1: other values are not supported yet")
    return SoundGrid(2**halvings, 1, halvings=halvings, joined=500)


def speech_projector(found: Source) -> tuple[list[Product], int]:
    """Two products, of which there are two more for sound beside images."""
    two = chain([found.width, found.text, found.text], bias=True)
    return two, sum(product.parameters for product in two)


CONFORMER_KEYS = """
    input_size nemo_conv_channels nemo_final_size nemo_activation time_reduction ext_pw_out_channel conv_activation
    conv_glu_type depthwise_multiplier depthwise_separable_out_channel kernel_size bias_max_distance bias_symmetric
    chunk_size left_chunk downsample_rate feature_layer dropout_rate
"""
CONFORMER = family(
    sizes_of(
        optional("num_blocks", absent=24),
        optional("hidden_size", absent=1024),
        optional("num_attention_heads", absent=16),
        optional("intermediate_size", absent=1536),
    ),
    VIT_LAYERS | {"gated_mlp": True, "final_norm": False, "dropout": dropping("dropout_rate")},
    harmless=(*HARMLESS, *CONFORMER_KEYS.split()),
)
AUDIO: dict[str, AudioFamily] = {
    "qwen2_audio": AudioFamily(
        WHISPER,
        lambda found: whisper_grid(found, 2),
        whisper_stem,
        lambda found: (chain([found.width, found.text], bias=True), 0),
    ),
    # The projector's width is the encoder's inner one, whose product with the tokens it has to be.
    "voxtral": AudioFamily(
        WHISPER,
        lambda found: whisper_grid(found, found.sizes["intermediate_size"] // found.width, filled=True),
        whisper_stem,
        lambda found: (chain([found.sizes["intermediate_size"], found.text, found.text], bias=False), 0),
    ),
    "qwen2_5_omni_thinker": AudioFamily(
        WHISPER,
        lambda found: SoundGrid(omni_window(found, 100), omni_window(found, 100) // 2, pool=2),
        lambda found: whisper_stem(found, learned=False),
        lambda found: (chain([found.width, output(found)], bias=True), 2 * output(found)),
    ),
    "phi4_multimodal": AudioFamily(CONFORMER, conformer_grid, conformer_stem, speech_projector),
    "qwen3_omni_moe_thinker": AudioFamily(
        family(SIZES, VIT_LAYERS, harmless=(*HARMLESS, *KEYS.split())),
        omni3_grid,
        omni3_stem,
        lambda found: (chain([found.width, found.width, output(found)], bias=True), 0),
    ),
}
"""The `model_type` of a file -> the encoder of sound under its `audio_config`."""
