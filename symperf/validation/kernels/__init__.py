"""Measured kernels beside predictions: what `symperf validate --kernels FOLDER` does.

A folder holds one table for each operation, Parquet or CSV, in the columns of aiconfigurator's collectors. `table.py`
reads them batch by batch; `operations.py` says which columns an operation has and which kernels of `infer` a row is;
`forms.py` compiles their closed forms, once for each structure; `faults.py` finds rows that no device can have
measured; `score.py` predicts and counts errors; `report.py` and `plot.py` show them. No constant is fitted here, and
no formula is written here: a row is predicted as an inference predicts the same kernel.

Imports `common`, `infer`, `models`, `operations`, `pictures`, `plans`, `systems`.
"""

from __future__ import annotations
