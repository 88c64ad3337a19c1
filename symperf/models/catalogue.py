"""Folders of models: a `config.json` for each name, and `SOURCES.csv` beside them, which says where each is from."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Catalogue:
    """A folder of models.

    Attributes:
        folder: with `NAME.json` for each model, and `SOURCES.csv` with the columns name, hub_id, aliases, kind, source
            and note.

    """

    folder: Path

    @cached_property
    def entries(self) -> dict[str, dict[str, str]]:
        """Name -> its row of SOURCES.csv."""
        with (self.folder / "SOURCES.csv").open(encoding="utf-8", newline="") as file:
            return {row["name"]: row for row in csv.DictReader(file)}

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Folded name, alias or hub id -> name."""
        known = {}
        for name, row in self.entries.items():
            for alias in (row["hub_id"], row["hub_id"].rpartition("/")[2], *row["aliases"].split("|")):
                if alias:
                    known[fold_name(alias)] = name
        return known | {name: name for name in self.entries}

    def names(self) -> list[str]:
        """The names of all models, sorted."""
        return sorted(self.entries)

    def find(self, name: str) -> str | None:
        """The name that a name, an alias or an id of the hub stands for, in any case; None for another text."""
        return self.aliases.get(fold_name(name))

    def path(self, name: str) -> Path:
        """The file of a name."""
        return self.folder / f"{name}.json"


def fold_name(name: str) -> str:
    """A name as aliases are compared: lower case, hyphens for blanks and underscores."""
    return name.strip().lower().replace(" ", "-").replace("_", "-")


CATALOGUE = Catalogue(_PACKAGE / "catalogue" / "models")
"""What users pick from."""
BENCHMARKS = Catalogue(_PACKAGE / "validation" / "models")
"""Models that were only ever built to be measured: cut to a few layers, or sized for a benchmark. They load by name;
lists for users leave them out."""
