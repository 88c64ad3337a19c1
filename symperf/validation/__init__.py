"""Published measurements beside predictions: what `symperf validate` does.

A row of a table (`training.csv`, `inference.csv`, `memory.csv`, or one of the references) becomes `Case`s or a
`LeftOut` with its reason (`case.py`); `score.py` computes the predictions and the errors by family.

For each table there is one module, named in `tables.TABLES`, with

* `COLUMNS`: a `rows.Columns`, the columns that must be there and those that may;
* `express(row: rows.TableRow) -> list[Case | LeftOut]`: pure mapping by columns. It may raise `InputError`, which
  becomes a `LeftOut` with that sentence as its reason; so does an `InputError` of `Case.run` (which builds the
  `BaseRun`, lazily) or of `Case.read` (which reads the predicted number from it, in the unit of `Case.measured`).

`rows.TableRow` reads cells: `row.text("model")`, `row.number("value")` and `row.whole("tp")` (None where the cell is
empty), `row.family`, `row.id`. `models.model_of(row)` is the model by name, or by the dimensions in the columns;
`systems.system_of(row)` the system by `hw_key`. What a row's columns do not say is declared: what a software does in
`definitions.py` (training, memory) and `inference_definitions.py`, what a document says in `documents.toml`, which
`documents.py` lays on the rows.

Imports `common`, `evaluation`, `infer`, `models`, `pictures`, `plans`, `runs`, `serve`, `systems`.
"""

from __future__ import annotations
