"""The references of serving: scheduling, queues, speculation, kernels and libraries of serving software."""

from __future__ import annotations

from .references import add, arxiv

SARATHI = arxiv(
    "agrawal2024",
    "2403.02310",
    "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve",
    "Agrawal, Amey and others",
    2024,
)
DISTSERVE = arxiv(
    "zhong2024",
    "2401.09670",
    "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving",
    "Zhong, Yinmin and others",
    2024,
)
REISER = add(
    "reiser1980",
    "article",
    "Mean-Value Analysis of Closed Multichain Queuing Networks",
    "Reiser, M. and Lavenberg, S. S.",
    1980,
    journal="Journal of the ACM 27(2)",
)
LEVIATHAN = arxiv(
    "leviathan2023",
    "2211.17192",
    "Fast Inference from Transformers via Speculative Decoding",
    "Leviathan, Yaniv and Kalman, Matan and Matias, Yossi",
    2023,
)
VIDUR = arxiv(
    "vidur2024",
    "2405.05465",
    "Vidur: A Large-Scale Simulation Framework for LLM Inference",
    "Agrawal, Amey and Kedia, Nitin and Mohan, Jayashree and others",
    2024,
)
SHAH = arxiv(
    "shah2024",
    "2407.08608",
    "FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision",
    "Shah, Jay and Bikshandi, Ganesh and Zhang, Ying and Thakkar, Vijay and Ramani, Pradeep and Dao, Tri",
    2024,
)
XQA = add(
    "nvidia2024xqa",
    "misc",
    "New XQA-kernel provides 2.4x more Llama-70B throughput within the same latency budget",
    "{NVIDIA}",
    2024,
    howpublished="https://nvidia.github.io/TensorRT-LLM/blogs/XQA-kernel.html",
)
LITTLE = add(
    "little1961",
    "article",
    "A Proof for the Queuing Formula: L = lambda W",
    "Little, John D. C.",
    1961,
    journal="Operations Research 9(3)",
)
KELLY = add(
    "kelly1979",
    "book",
    "Reversibility and Stochastic Networks",
    "Kelly, Frank P.",
    1979,
    publisher="Wiley",
)
FUHRMANN = add(
    "fuhrmann1985",
    "article",
    "Stochastic Decompositions in the M/G/1 Queue with Generalized Vacations",
    "Fuhrmann, S. W. and Cooper, Robert B.",
    1985,
    journal="Operations Research 33(5)",
)
SAKASEGAWA = add(
    "sakasegawa1977",
    "article",
    "An Approximation Formula L_q = alpha rho^beta / (1 - rho)",
    "Sakasegawa, Hirotaka",
    1977,
    journal="Annals of the Institute of Statistical Mathematics 29",
)
KTRANSFORMERS = add(
    "chen2025ktransformers",
    "inproceedings",
    "KTransformers: Unleashing the Full Potential of CPU/GPU Hybrid Inference for MoE Models",
    "Chen, Hongtao and others",
    2025,
    booktitle="Proceedings of the 31st Symposium on Operating Systems Principles",
)
PUNICA = arxiv("chen2023punica", "2310.18547", "Punica: Multi-Tenant LoRA Serving", "Chen, Lequn and others", 2023)
S_LORA = arxiv(
    "sheng2023slora",
    "2311.03285",
    "S-LoRA: Serving Thousands of Concurrent LoRA Adapters",
    "Sheng, Ying and others",
    2023,
)
