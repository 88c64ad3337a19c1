"""The references that formulas cite, as entries of a bibliography."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..formulas.sources import SOURCES


@dataclass(frozen=True)
class Reference:
    """One reference in plain text.

    Attributes:
        key: of the BibTeX entry.
        authors: as they are printed, "A. Smith, B. Jones and others".
        title: of the work.
        where: journal, volume and pages, the number at arXiv, an institution or an address; may be empty.
        year: of publication.
        bibtex: the whole entry.
    """

    key: str
    authors: str
    title: str
    where: str
    year: str
    bibtex: str

    @property
    def text(self) -> str:
        """All of it on one line."""
        end = "" if self.title.endswith(("?", "!", ".")) else "."
        where = f" {self.where}," if self.where else ""
        return f"{self.authors}. {self.title}{end}{where} {self.year}."


def reference(key: str) -> Reference:
    """The reference of a key of `formulas.sources`.

    Raises:
        KeyError: there is none.

    >>> print(reference("shazeer2020").text)
    Noam Shazeer. GLU Variants Improve Transformer. arXiv:2002.05202, 2020.
    """
    bibtex = SOURCES[key]
    fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", bibtex, re.MULTILINE))
    return Reference(
        key=key,
        authors=_authors(fields.get("author", "")),
        title=_strip_braces(fields.get("title", "")),
        where=_where(fields),
        year=fields.get("year", ""),
        bibtex=bibtex,
    )


def _authors(text: str) -> str:
    names = [" ".join(reversed(name.split(", ", 1))) for name in _strip_braces(text).split(" and ") if name]
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "".join(names)


def _where(fields: dict[str, str]) -> str:
    if "eprint" in fields:
        return f"arXiv:{fields['eprint']}"
    venue = next((fields[name] for name in ("journal", "booktitle", "institution", "publisher") if name in fields), "")
    number = f"({fields['number']})" if "number" in fields else ""
    volume = f" {fields['volume']}{number}" if "volume" in fields else ""
    pages = f", pages {fields['pages'].replace('--', '–')}" if "pages" in fields else ""
    address = fields.get("howpublished") or fields.get("url") or ""
    return _strip_braces(f"{venue}{volume}{pages}") or address.removeprefix(r"\url{").removesuffix("}")


def _strip_braces(text: str) -> str:
    return text.replace("{", "").replace("}", "")
