"""Where the chunks of a sweep go: files of raw numbers that become one file at the end, or a Zarr folder directly."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..common.cells import csv_cell
from ..common.errors import InputError, nearest, quote
from ..common.extras import import_extra
from .chunks import Block, count, nth
from .dataset import attributes_of, coordinates_of, frame, variable_attributes
from .journal import sync
from .record import RECORD, SweepRecord
from .sweep import REASON, Sweep
from .work_folder import remove

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import xarray as xr

    Array = np.ndarray[Any, Any]

NOT_COMPUTED = 255
"""The reason of a point whose chunk is not there yet, in a file that an interruption left."""


class Sink(ABC):
    """The chunks of a sweep on their way into a file.

    Args:
        sweep: what is computed.
        shape: of a chunk.
        folder: for what is not finished.
        out: the file or folder to make.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    copies: ClassVar[int] = 2
    """How often the data is on disk when the file is made."""

    def __init__(self, sweep: Sweep, shape: tuple[int, ...], folder: Path, out: Path) -> None:
        for package in self.packages:
            import_extra(package, "sweep", out.name)
        self.sweep, self.shape, self.folder, self.out = sweep, shape, folder, out
        self.variables: dict[str, np.dtype[Any]] = {
            **dict.fromkeys(sweep.outputs, np.dtype(np.float64)),
            REASON: np.dtype(np.uint8),
        }

    def block(self, index: int) -> Block:
        """The part of the grid that a chunk is."""
        return nth(self.sweep.shape, self.shape, index)

    def start(self) -> None:
        """Make ready for chunks."""
        (self.folder / "chunks").mkdir(exist_ok=True)

    def put(self, index: int, data: bytes) -> None:
        """Write a chunk to disk, whole or not at all."""
        path = self._path(index)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync(path.parent)

    def get(self, index: int) -> bytes | None:
        """A chunk that was written, or None where it cannot be read."""
        try:
            return self._path(index).read_bytes()
        except OSError:
            return None

    def _path(self, index: int) -> Path:
        return self.folder / "chunks" / f"{index:09d}"

    @abstractmethod
    def make(self, done: list[int], path: Path, record: SweepRecord | None) -> None:
        """Make the file of the chunks that are done, at a temporary path."""

    @classmethod
    def recorded(cls, out: Path) -> SweepRecord | None:
        """What a file that is there says of itself, if it is whole and such a file."""
        try:
            return SweepRecord.read(cls._recorded(out))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @classmethod
    @abstractmethod
    def _recorded(cls, out: Path) -> Any:
        """The text of the record."""

    def finish(self, done: list[int], record: SweepRecord | None) -> None:
        """Make the file; until it is whole, what was in its place stays.

        Args:
            done: the chunks that are there.
            record: of the whole, if they are all there.
        """
        path = self.folder / f"out{self.out.suffix}"
        remove(path)
        self.make(done, path, record)
        sync(path)
        replace(path, self.out)

    def unpack(self, index: int, data: bytes) -> dict[str, Array]:
        """The arrays of a chunk."""
        shape = tuple(cut.stop - cut.start for cut in self.block(index))
        size = int(np.prod(shape))
        found = {}
        at = 0
        for name, kind in self.variables.items():
            found[name] = np.frombuffer(data, kind, size, at).reshape(shape)
            at += size * kind.itemsize
        return found

    def arrays(self, index: int) -> dict[str, Array]:
        """The arrays of a chunk that is there."""
        data = self.get(index)
        if data is None:
            raise InputError(f"{self._path(index)}: cannot be read; --resume computes it again")
        return self.unpack(index, data)

    def attributes(self, name: str) -> dict[str, Any]:
        """The attributes of a variable in a file: also its path, and the flag of what is not there yet."""
        found = variable_attributes(self.sweep, name)
        if name == REASON:
            found["flag_values"] = np.append(found["flag_values"], np.uint8(NOT_COMPUTED))
            found["flag_meanings"] += " not_computed"
        return {"path": name, **found}

    def coordinates(self) -> xr.Dataset:
        """The dimensions, coordinates and attributes of the file."""
        xarray = import_extra("xarray", "sweep", self.out.name)
        parts = {name: (dim, values, about) for name, dim, values, about in coordinates_of(self.sweep)}
        return xarray.Dataset(coords=parts, attrs=attributes_of(self.sweep))  # type: ignore[no-any-return]


def pack(found: dict[str, Array], outputs: tuple[str, ...]) -> bytes:
    """A chunk as bytes: the arrays in order."""
    return b"".join(np.ascontiguousarray(found[name]).reshape(-1).view(np.uint8).data for name in (*outputs, REASON))


class Rows(Sink):
    """A table with a row for each point."""

    packages: ClassVar[tuple[str, ...]] = ("pandas", "pyarrow")
    opened_elsewhere: ClassVar[bool] = False
    """Whether programs open it that take texts for formulas."""

    def tables(self, done: list[int]) -> Iterator[Any]:
        """An Arrow table for each chunk; one without rows where there is no chunk."""
        arrow = import_extra("pyarrow", "sweep", self.out.name)
        parts = ((self.block(index), self.arrays(index), None) for index in done)
        empty = {name: np.empty(0, kind) for name, kind in self.variables.items()}
        nowhere = [np.empty(0, dtype=np.int64)] * len(self.shape)
        for block, found, at in parts if done else [((), empty, nowhere)]:
            rows = frame(self.sweep, block, found, at)
            rows[REASON] = rows[REASON].astype(str)
            if self.opened_elsewhere:
                for name in (each for each in rows if getattr(rows[each].dtype, "kind", "O") not in "biuf"):
                    rows[name] = rows[name].map(csv_cell)
            yield arrow.Table.from_pandas(rows, preserve_index=False)


class Csv(Rows):
    """Text; numbers are written so that reading them gives the same ones, what is undefined is empty.

    Text has no attributes: the record of a whole file lies beside it, with the file's size.
    """

    opened_elsewhere: ClassVar[bool] = True

    def finish(self, done: list[int], record: SweepRecord | None) -> None:
        """Also write or remove the record."""
        beside = _beside(self.out)
        beside.unlink(missing_ok=True)
        super().finish(done, record)
        if record is not None:
            part = self.folder / beside.name
            part.write_text(json.dumps([self.out.stat().st_size, record.text()]), encoding="utf-8")
            sync(part)
            replace(part, beside)

    @classmethod
    def _recorded(cls, out: Path) -> Any:
        size, text = json.loads(_beside(out).read_text(encoding="utf-8"))
        return text if size == out.stat().st_size else None

    def make(self, done: list[int], path: Path, record: SweepRecord | None) -> None:  # noqa: ARG002
        """One line a point."""
        csv = import_extra("pyarrow.csv", "sweep", self.out.name)
        with path.open("wb") as file:
            for k, table in enumerate(self.tables(done)):
                if k == 0:
                    file.write((",".join(table.column_names) + "\n").encode())  # plain names, without quotes
                csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="needed"))


class Parquet(Rows):
    """Columns, compressed; a row group for each chunk."""

    @classmethod
    def _recorded(cls, out: Path) -> Any:
        return (import_extra("pyarrow.parquet", "sweep", out.name).read_schema(out).metadata or {}).get(RECORD.encode())

    def make(self, done: list[int], path: Path, record: SweepRecord | None) -> None:
        """One row a point."""
        parquet = import_extra("pyarrow.parquet", "sweep", self.out.name)
        writer = None
        for table in self.tables(done):
            if writer is None:
                about = {**table.schema.metadata, RECORD: record.text()} if record else table.schema.metadata
                writer = parquet.ParquetWriter(path, table.schema.with_metadata(about))
            writer.write_table(table.replace_schema_metadata(about))
        if writer is not None:
            writer.close()


class NetCdf(Sink):
    """A NetCDF-4 file."""

    packages: ClassVar[tuple[str, ...]] = ("xarray", "h5netcdf", "h5py")

    @classmethod
    def _recorded(cls, out: Path) -> Any:
        with import_extra("h5netcdf", "sweep", out.name).File(out, "r") as file:
            return file.attrs.get(RECORD)

    def make(self, done: list[int], path: Path, record: SweepRecord | None) -> None:
        """An array for each output."""
        h5netcdf = import_extra("h5netcdf", "sweep", self.out.name)
        self.coordinates().to_netcdf(path, engine="h5netcdf")
        with h5netcdf.File(path, "a") as file:
            if record:
                file.attrs[RECORD] = record.text()
            for axis in self.sweep.axes:
                if axis.name not in file.dimensions:
                    file.dimensions[axis.name] = len(axis)
            made = {}
            for name, kind in self.variables.items():
                fill = None if name == REASON else np.nan  # a fill value would make readers turn codes into floats
                dims = tuple(axis.name for axis in self.sweep.axes)
                label = name.replace("/", ".")
                made[name] = file.create_variable(label, dims, kind, fillvalue=fill, chunks=self.shape)
                made[name].attrs.update(self.attributes(name))
            for index in done:
                for name, values in self.arrays(index).items():
                    made[name][self.block(index)] = values
            for index in set(range(count(self.sweep.shape, self.shape))) - set(done):
                made[REASON][self.block(index)] = np.uint8(NOT_COMPUTED)


class Zarr(Sink):
    """A Zarr folder, written chunk by chunk: no second copy, any size."""

    packages: ClassVar[tuple[str, ...]] = ("xarray", "zarr")
    copies: ClassVar[int] = 1

    def start(self) -> None:
        """Make the arrays, or open those of a job that was stopped."""
        zarr = import_extra("zarr", "sweep", self.out.name)
        self.root = self.folder / "out.zarr"
        if self.out.exists() and (self.folder / "shown").exists() and not self.root.exists():
            self.out.rename(self.root)
        if not (self.folder / "arrays").exists():
            remove(self.root)
            self._create(zarr)
            (self.folder / "arrays").touch()
            sync(self.folder)
        for half in self.root.rglob("*.partial"):  # what a killed process was writing
            half.unlink()
        group = zarr.open_group(self.root, mode="r+", use_consolidated=False)
        self.made = {name: group[name.replace("/", ".")] for name in self.variables}

    def _create(self, zarr: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of text coordinates, whose format may change
            self.coordinates().to_zarr(self.root, mode="w", zarr_format=3, consolidated=False)
        group = zarr.open_group(self.root, mode="r+", use_consolidated=False)
        for name, kind in self.variables.items():
            about = self.attributes(name)
            group.create_array(
                name.replace("/", "."),
                shape=self.sweep.shape,
                dtype=kind,
                chunks=self.shape,
                fill_value=NOT_COMPUTED if name == REASON else np.nan,
                dimension_names=[axis.name for axis in self.sweep.axes],
                attributes={k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in about.items()},
                compressors=zarr.codecs.ZstdCodec(level=1),  # three times as fast as its default, and as small
                config={"write_empty_chunks": True},
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a part of the format that may change
            zarr.consolidate_metadata(self.root)

    def put(self, index: int, data: bytes) -> None:
        """Write a chunk of every array."""
        block = self.block(index)
        for name, values in self.unpack(index, data).items():
            self.made[name][block] = values
            at = [str(cut.start // n) for cut, n in zip(block, self.shape, strict=True)]
            file = self.root.joinpath(name.replace("/", "."), "c", *at)
            sync(file)
            sync(file.parent)

    def get(self, index: int) -> bytes | None:
        """A chunk of every array."""
        block = self.block(index)
        try:
            return pack({name: np.asarray(made[block]) for name, made in self.made.items()}, self.sweep.outputs)
        except (OSError, ValueError, RuntimeError):
            return None

    @classmethod
    def _recorded(cls, out: Path) -> Any:
        return json.loads((out / "zarr.json").read_text(encoding="utf-8"))["attributes"].get(RECORD)

    def make(self, done: list[int], path: Path, record: SweepRecord | None) -> None:  # noqa: ARG002  (they are there)
        """Add the record to the attributes."""
        if record is None:
            return
        about = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
        about["attributes"][RECORD] = record.text()
        part = self.folder / "zarr.json"
        part.write_text(json.dumps(about, indent=2), encoding="utf-8")
        sync(part)
        replace(part, path / "zarr.json")

    def finish(self, done: list[int], record: SweepRecord | None) -> None:
        """Give the folder its name."""
        self.make(done, self.root, record)
        (self.folder / "shown").touch()
        replace(self.root, self.out)


def _beside(out: Path) -> Path:
    return out.with_name(f".{out.name}.sweep")


SINKS: dict[str, type[Sink]] = {".zarr": Zarr, ".nc": NetCdf, ".parquet": Parquet, ".csv": Csv}


def kind_of(out: Path) -> type[Sink]:
    """The sink for a path.

    Raises:
        InputError: its name ends in no known way.
    """
    if out.suffix not in SINKS:
        raise InputError(
            f"-o: found {quote(str(out))}, expected a name that ends in {', '.join(SINKS)}{nearest(out.suffix, SINKS)}"
        )
    return SINKS[out.suffix]


def replace(path: Path, out: Path) -> None:
    """Rename, in the place of what may be there."""
    if out.is_dir() and not out.is_symlink():
        aside = path.parent / "replaced"
        remove(aside)
        out.rename(aside)
        path.rename(out)
        remove(aside)
    else:
        if path.is_dir():
            with contextlib.suppress(FileNotFoundError):
                out.unlink()
        path.replace(out)
    sync(out.parent)
