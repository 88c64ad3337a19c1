"""The references that formulas cite, as BibTeX.

Imports no other room.
"""

from __future__ import annotations

from .architectures import *  # noqa: F403
from .memory import *  # noqa: F403
from .references import SOURCES as SOURCES
from .references import add as _add
from .references import arxiv as _arxiv
from .serving import *  # noqa: F403
from .software import *  # noqa: F403
from .technology import *  # noqa: F403
from .training import *  # noqa: F403

KUNDU = _arxiv(
    "kundu2024",
    "2407.14645",
    "Performance Modeling and Workload Analysis of Distributed Large Language Model Training and Inference",
    "Kundu, Joyjit and others",
    2024,
)
DEEPFLOW = _arxiv(
    "ardalani2022",
    "2211.03309",
    "DeepFlow: A Cross-Stack Pathfinding Framework for Distributed AI Systems",
    "Ardalani, Newsha and Pal, Saptadeep and Gupta, Puneet",
    2022,
)
NARAYANAN = _arxiv(
    "narayanan2021",
    "2104.04473",
    "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    "Narayanan, Deepak and others",
    2021,
)
KORTHIKANTI = _arxiv(
    "korthikanti2022",
    "2205.05198",
    "Reducing Activation Recomputation in Large Transformer Models",
    "Korthikanti, Vijay and others",
    2022,
)
SHOEYBI = _arxiv(
    "shoeybi2019",
    "1909.08053",
    "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
    "Shoeybi, Mohammad and others",
    2019,
)
RAJBHANDARI = _arxiv(
    "rajbhandari2020",
    "1910.02054",
    "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    "Rajbhandari, Samyam and Rasley, Jeff and Ruwase, Olatunji and He, Yuxiong",
    2020,
)
GPIPE = _arxiv(
    "huang2019",
    "1811.06965",
    "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
    "Huang, Yanping and others",
    2019,
)
DAO = _arxiv(
    "dao2022",
    "2205.14135",
    "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
    "Dao, Tri and Fu, Daniel Y. and Ermon, Stefano and Rudra, Atri and Re, Christopher",
    2022,
)
DAO2 = _arxiv(
    "dao2023",
    "2307.08691",
    "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
    "Dao, Tri",
    2023,
)
RADFORD = _add(
    "radford2019",
    "techreport",
    "Language Models are Unsupervised Multitask Learners",
    "Radford, Alec and others",
    2019,
    institution="OpenAI",
)
BA = _arxiv(
    "ba2016",
    "1607.06450",
    "Layer Normalization",
    "Ba, Jimmy Lei and Kiros, Jamie Ryan and Hinton, Geoffrey",
    2016,
)
ZHANG = _arxiv(
    "zhang2019", "1910.07467", "Root Mean Square Layer Normalization", "Zhang, Biao and Sennrich, Rico", 2019
)
SU = _arxiv(
    "su2021",
    "2104.09864",
    "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    "Su, Jianlin and others",
    2021,
)
KINGMA = _arxiv(
    "kingma2014",
    "1412.6980",
    "Adam: A Method for Stochastic Optimization",
    "Kingma, Diederik P. and Ba, Jimmy",
    2014,
)
MICIKEVICIUS = _arxiv(
    "micikevicius2017", "1710.03740", "Mixed Precision Training", "Micikevicius, Paulius and others", 2017
)
WILLIAMS = _add(
    "williams2009",
    "article",
    "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
    "Williams, Samuel and Waterman, Andrew and Patterson, David",
    2009,
    journal="Communications of the ACM",
    volume="52",
    number="4",
    pages="65--76",
)
SMITH = _arxiv(
    "smith2019",
    "1702.02017",
    "A Tight I/O Lower Bound for Matrix Multiplication",
    "Smith, Tyler Michael and Lowery, Bradley and Langou, Julien and van de Geijn, Robert A.",
    2019,
)
THAKUR = _add(
    "thakur2005",
    "article",
    "Optimization of Collective Communication Operations in MPICH",
    "Thakur, Rajeev and Rabenseifner, Rolf and Gropp, William",
    2005,
    journal="International Journal of High Performance Computing Applications",
    volume="19",
    number="1",
    pages="49--66",
)
PATARASUK = _add(
    "patarasuk2009",
    "article",
    "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    "Patarasuk, Pitch and Yuan, Xin",
    2009,
    journal="Journal of Parallel and Distributed Computing",
    volume="69",
    number="2",
    pages="117--124",
)
SANDERS = _add(
    "sanders2009",
    "article",
    "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
    "Sanders, Peter and Speck, Jochen and Traff, Jesper Larsson",
    2009,
    journal="Parallel Computing",
    volume="35",
    number="12",
    pages="581--594",
)
HOCKNEY = _add(
    "hockney1994",
    "article",
    "The communication challenge for MPP: Intel Paragon and Meiko CS-2",
    "Hockney, Roger W.",
    1994,
    journal="Parallel Computing",
    volume="20",
    number="3",
    pages="389--398",
)
CUTLASS = _add(
    "cutlass",
    "misc",
    "CUTLASS: Efficient GEMM in CUDA",
    "NVIDIA",
    2023,
    howpublished="https://docs.nvidia.com/cutlass/media/docs/cpp/efficient_gemm.html",
)
DEPENDENT_LAUNCH = _add(
    "cuda-dependent-launch",
    "misc",
    "CUDA C++ Programming Guide: Programmatic Dependent Launch and Synchronization",
    "NVIDIA",
    2025,
    howpublished="https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
)
NVIDIA_GEMM = _add(
    "nvidia-gemm",
    "misc",
    "Matrix Multiplication Background User's Guide",
    "NVIDIA",
    2023,
    howpublished="https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/",
)
CHOWDHERY = _arxiv(
    "chowdhery2022",
    "2204.02311",
    "PaLM: Scaling Language Modeling with Pathways",
    "Chowdhery, Aakanksha and others",
    2022,
)
HU = _arxiv(
    "hu2025",
    "2507.04786",
    "Demystifying NCCL: An In-depth Analysis of GPU Communication Protocols and Algorithms",
    "Hu, Zhiyi and Shen, Siyuan and Bonato, Tommaso and Jeaugey, Sylvain and others",
    2025,
)
JEAUGEY = _add(
    "jeaugey2020",
    "misc",
    "What is LL128 Protocol?",
    "Jeaugey, Sylvain",
    2020,
    howpublished="https://github.com/NVIDIA/nccl/issues/281",
)
FLASH_DECODING = _add(
    "flashdecoding2023",
    "misc",
    "Flash-Decoding for long-context inference",
    "Dao, Tri and Haziza, Daniel and Massa, Francisco and Sizov, Grigory",
    2023,
    howpublished="https://crfm.stanford.edu/2023/10/12/flashdecoding.html",
)
KWON = _arxiv(
    "kwon2023",
    "2309.06180",
    "Efficient Memory Management for Large Language Model Serving with PagedAttention",
    "Kwon, Woosuk and others",
    2023,
)
SPECTOR = _add(
    "spector2025",
    "misc",
    "Look Ma, No Bubbles! Designing a Low-Latency Megakernel for Llama-1B",
    "Spector, Benjamin and Juravsky, Jordan and Sul, Stuart and others",
    2025,
    howpublished="https://hazyresearch.stanford.edu/blog/2025-05-27-no-bubbles",
)
LEPIKHIN = _arxiv(
    "lepikhin2020",
    "2006.16668",
    "GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding",
    "Lepikhin, Dmitry and others",
    2020,
)
MEGABLOCKS = _arxiv(
    "gale2022",
    "2211.15841",
    "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts",
    "Gale, Trevor and Narayanan, Deepak and Young, Cliff and Zaharia, Matei",
    2022,
)
QI = _arxiv(
    "qi2024",
    "2401.10241",
    "Zero Bubble Pipeline Parallelism",
    "Qi, Penghui and Wan, Xinyi and Huang, Guangxing and Lin, Min",
    2024,
)
RING_ATTENTION = _arxiv(
    "liu2023",
    "2310.01889",
    "Ring Attention with Blockwise Transformers for Near-Infinite Context",
    "Liu, Hao and Zaharia, Matei and Abbeel, Pieter",
    2023,
)
STRIPED = _arxiv(
    "brandon2023",
    "2311.09431",
    "Striped Attention: Faster Ring Attention for Causal Transformers",
    "Brandon, William and others",
    2023,
)
ULYSSES = _arxiv(
    "jacobs2023",
    "2309.14509",
    "DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long Sequence Transformer Models",
    "Jacobs, Sam Ade and others",
    2023,
)
FOLDING = _arxiv(
    "liu2025",
    "2504.14960",
    "MoE Parallel Folding: Heterogeneous Parallelism Mappings for Efficient Large-Scale MoE Model Training",
    "Liu, Dennis and others",
    2025,
)
FSDP = _arxiv(
    "zhao2023",
    "2304.11277",
    "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel",
    "Zhao, Yanli and others",
    2023,
)
SHARP = _add(
    "graham2016",
    "inproceedings",
    "Scalable Hierarchical Aggregation Protocol (SHArP): A Hardware Architecture for Efficient Data Reduction",
    "Graham, Richard L. and others",
    2016,
    booktitle="First International Workshop on Communication Optimizations in HPC",
)
KLENK = _add(
    "klenk2020",
    "inproceedings",
    "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives",
    "Klenk, Benjamin and Jiang, Nan and Thorson, Greg and Dennison, Larry",
    2020,
    booktitle="International Symposium on Computer Architecture",
)
NCCL_TESTS = _add(
    "nccl-tests",
    "misc",
    "Performance reported by NCCL tests",
    "NVIDIA",
    2024,
    howpublished="https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
)
XGMI = _add(
    "kolla2025",
    "misc",
    "Understanding {RCCL} Bandwidth and {xGMI} Performance on {AMD} {Instinct} {MI300X}",
    "Kolla, Jayacharan and Alizadeh, Pedram and Lee, Gilbert",
    2025,
    howpublished=r"\url{https://rocm.blogs.amd.com/software-tools-optimization/mi300x-rccl-xgmi/README.html}",
)
