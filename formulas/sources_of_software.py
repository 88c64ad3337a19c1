"""Sources of what software and chance add to a step."""

from __future__ import annotations

from .references import add

PYTORCH_GRAPHS = add(
    "nguyen2021",
    "misc",
    "Accelerating PyTorch with CUDA Graphs",
    "Nguyen, Vinh and Carilli, Michael and Eryilmaz, Sukru Burc and others",
    2021,
    howpublished="https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
)
BOUCHERON = add(
    "boucheron2013",
    "book",
    "Concentration Inequalities: A Nonasymptotic Theory of Independence",
    "Boucheron, Stephane and Lugosi, Gabor and Massart, Pascal",
    2013,
    publisher="Oxford University Press",
)
