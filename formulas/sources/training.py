"""The references of the state of training: optimizers, low precision, offload."""

from __future__ import annotations

from .references import add as _add
from .references import arxiv as _arxiv

DETTMERS = _arxiv(
    "dettmers2022",
    "2110.02861",
    "8-bit Optimizers via Block-wise Quantization",
    "Dettmers, Tim and Lewis, Mike and Shleifer, Sam and Zettlemoyer, Luke",
    2022,
)
ADAFACTOR = _arxiv(
    "shazeer2018",
    "1804.04235",
    "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
    "Shazeer, Noam and Stern, Mitchell",
    2018,
)
MUON = _add(
    "jordan2024",
    "misc",
    "Muon: An optimizer for hidden layers in neural networks",
    "Jordan, Keller and others",
    2024,
    howpublished=r"\url{https://kellerjordan.github.io/posts/muon/}",
)
MOONLIGHT = _arxiv("liu2025muon", "2502.16982", "Muon is Scalable for LLM Training", "Liu, Jingyuan and others", 2025)
NVFP4 = _arxiv("nvidia2025nvfp4", "2509.25149", "Pretraining Large Language Models with NVFP4", "NVIDIA", 2025)
FP8 = _arxiv(
    "micikevicius2022", "2209.05433", "FP8 Formats for Deep Learning", "Micikevicius, Paulius and others", 2022
)
TRANSFORMER_ENGINE = _add(
    "transformerengine",
    "misc",
    "Transformer Engine: low-precision training, performance considerations",
    "NVIDIA",
    2025,
    howpublished=r"\url{https://docs.nvidia.com/deeplearning/transformer-engine/}",
)
TRANSFORMER_ENGINE_CODE = _add(
    "transformerenginecode",
    "misc",
    "Transformer Engine: attention with context parallelism",
    "NVIDIA",
    2025,
    howpublished=r"\url{https://github.com/NVIDIA/TransformerEngine}",
)
ZERO_OFFLOAD = _arxiv(
    "ren2021", "2101.06840", "ZeRO-Offload: Democratizing Billion-Scale Model Training", "Ren, Jie and others", 2021
)
ZERO_INFINITY = _arxiv(
    "rajbhandari2021",
    "2104.07857",
    "ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning",
    "Rajbhandari, Samyam and others",
    2021,
)
LORA = _arxiv(
    "hu2021lora", "2106.09685", "LoRA: Low-Rank Adaptation of Large Language Models", "Hu, Edward J. and others", 2021
)
QLORA = _arxiv(
    "dettmers2023qlora", "2305.14314", "QLoRA: Efficient Finetuning of Quantized LLMs", "Dettmers, Tim and others", 2023
)
DORA = _arxiv(
    "liu2024dora", "2402.09353", "DoRA: Weight-Decomposed Low-Rank Adaptation", "Liu, Shih-Yang and others", 2024
)
PEFT = _add(
    "peft",
    "misc",
    "PEFT: State-of-the-art Parameter-Efficient Fine-Tuning methods",
    "Mangrulkar, Sourab and others",
    2022,
    howpublished=r"\url{https://github.com/huggingface/peft}",
)
WLB_LLM = _arxiv(
    "wang2025wlb",
    "2503.17924",
    "WLB-LLM: Workload-Balanced 4D Parallelism for Large Language Model Training",
    "Wang, Zheng and Cai, Anna and Xie, Xinfeng and others",
    2025,
)
LIGER = _arxiv(
    "hsu2024", "2410.10989", "Liger Kernel: Efficient Triton Kernels for LLM Training", "Hsu, Pin-Lun and others", 2024
)
MEGATRON_EXPERTS = _add(
    "megatron2026",
    "misc",
    "Megatron-LM: experts of megatron/core/transformer/moe, activations of megatron/core/fusions",
    "NVIDIA",
    2026,
    howpublished=r"\url{https://github.com/NVIDIA/Megatron-LM}",
)
TORCHTITAN_LOSS = _add(
    "torchtitan2026",
    "misc",
    "torchtitan: components/loss.py",
    "PyTorch",
    2026,
    howpublished=r"\url{https://github.com/pytorch/torchtitan}",
)
INTERNLM_METRICS = _add(
    "internlm2023",
    "misc",
    "InternLM: internlm/model/metrics.py and modeling_internlm.py",
    "InternLM Team",
    2023,
    howpublished=r"\url{https://github.com/InternLM/InternLM}",
)
WIJMANS = _arxiv(
    "wijmans2025", "2411.09009", "Cut Your Losses in Large-Vocabulary Language Models", "Wijmans, Erik and others", 2025
)
ANSEL = _add(
    "ansel2024",
    "inproceedings",
    "PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph Compilation",
    "Ansel, Jason and Yang, Edward and He, Horace and others",
    2024,
    booktitle="ASPLOS",
)
