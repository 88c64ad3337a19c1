"""`symperf measure` on a device that is not there: what is planned, how rows come, and what is said without a GPU."""

from __future__ import annotations

import csv
import io
import itertools
import json
import subprocess
import sys
import types
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from support.paths import ROOT

from symperf.calibration.table import NEEDED, read
from symperf.common.errors import InputError
from symperf.measuring import attention, decoding, elementwise, gemm, launch, steps, streams, sustained
from symperf.measuring.bench import Bench, NotMeasuredError
from symperf.measuring.clock import Clock
from symperf.measuring.columns import COLUMNS, KINDS
from symperf.measuring.jobs import scatter
from symperf.measuring.measure import JOBS, SHARES, measure
from symperf.measuring.sampler import Sampler
from symperf.measuring.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

MILLISECONDS = 0.5


class Event:
    """A device event: each is half a millisecond after the one before it."""

    ticks = itertools.count()

    def __init__(self, **_: Any) -> None:
        self.tick = 0

    def record(self) -> None:
        self.tick = next(Event.ticks)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, other: Event) -> float:
        return MILLISECONDS * (other.tick - self.tick)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """A PyTorch with one device, on which every operation succeeds."""
    fake = MagicMock(name="torch")
    fake.__version__ = "2.0"
    fake.cuda.is_available.return_value = True
    fake.cuda.device_count.return_value = 1
    fake.cuda.mem_get_info.return_value = (2**40, 2**40)
    told = types.SimpleNamespace(name="Some GPU", total_memory=2**38, L2_cache_size=2**25, uuid="")
    fake.cuda.get_device_properties.return_value = told
    fake.cuda.Event = Event
    fake._scaled_mm = MagicMock()
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr("symperf.measuring.sampler.COMMAND", ("no-such-command",))
    monkeypatch.setattr("symperf.measuring.clock.SUSTAINED", 0.002)
    monkeypatch.setattr("symperf.measuring.clock.WARM", 0.0)
    monkeypatch.setattr("symperf.measuring.clock.BURSTS", 2)
    monkeypatch.setattr("symperf.measuring.clock.LASTING", 0.002)
    monkeypatch.setitem(JOBS, "elementwise", lambda: elementwise.jobs()[:6])
    return fake


def all_jobs() -> list[Any]:
    return [job for make in JOBS.values() for job in make()]


def test_every_row_is_one_that_calibrate_reads() -> None:
    """Columns are documented ones, kinds are known, and what a kind needs is there."""
    for job in all_jobs():
        assert job.row.keys() <= COLUMNS.keys(), job.label
        assert job.row["kind"] in KINDS
        assert all(job.row.get(column) for column in NEEDED[job.row["kind"]]), job.label


def test_no_measurement_is_planned_twice() -> None:
    labels = [(job.label, job.mode, job.row.get("kv_heads"), job.row.get("head_dim")) for job in all_jobs()]
    assert len(set(labels)) == len(labels)


def test_the_grid_of_products() -> None:
    """Powers of two up to 16384 rows of every projection, in bf16; samples of other formats and of graphs."""
    jobs = gemm.jobs()
    full = [job.row for job in jobs if job.row["dtype"] == "bf16" and job.mode == "stream"]
    assert {row["m"] for row in full} == {2**power for power in range(15)}
    assert {(row["n"], row["k"]) for row in full} == {(n, k) for _, n, k in gemm.products()}
    assert len(full) == 15 * len(gemm.products())
    assert {job.row["dtype"] for job in jobs} == {"bf16", "fp16", "fp8"}
    assert all(job.row["m"] <= 256 for job in jobs if job.mode == "graph")
    qkv = next(job.row for job in jobs if (job.row["m"], job.row["n"], job.row["k"]) == (1, 6144, 4096))
    assert qkv["bytes"] == 2 * (4096 + 6144 * 4096 + 6144)


def test_every_beginning_of_the_plan_is_a_fair_sample() -> None:
    """A quarter of the products has each number of rows about as often."""
    part = [job.row["m"] for job in gemm.jobs() if job.row["dtype"] == "bf16"][: 15 * 13]
    counts = [part.count(2**power) for power in range(15)]
    assert min(counts) >= 9
    assert max(counts) <= 20
    assert sorted(scatter(range(100))) == list(range(100))


def test_other_plans() -> None:
    """Sizes and bytes of the other kinds."""
    copies = [job.row for job in streams.jobs()]
    assert {row["bytes"] for row in copies if row["name"] == "read"} == {2**power for power in range(16, 33)}
    assert all(row["bytes"] == 3 * 4 * row["elements"] for row in copies if row["name"] == "triad")
    decode = [job.row for job in attention.jobs() if job.row["name"] == "decode"]
    assert all(row["sequence"] == 1 < row["context"] for row in decode)
    assert {job.row["name"] for job in attention.jobs()} >= {"forward", "backward", "decode"}
    adam = [job.row for job in elementwise.jobs() if job.row["name"] == "adam"]
    assert all(row["bytes"] == 28 * row["elements"] for row in adam)
    apart = [job.row for job in elementwise.jobs() if job.row["name"] in ("adam_foreach", "adam_loop")]
    assert {row["bytes"] / row["elements"] for row in apart} == {4 * (3 + 2 + 3 + 2 + 2 + 2 + 4)}
    assert all(row["kernels"] >= 7 for row in apart)
    assert {job.mode for job in launch.jobs()} == {"stream", "graph", "host"}
    assert any(job.row.get("vocabulary") for job in steps.jobs())
    assert SHARES.keys() == {*JOBS, "collective"} == set(KINDS)
    assert sum(SHARES.values()) == pytest.approx(1.1)


def test_loads_that_last() -> None:
    """Each load has the FLOPs and bytes of one call, and rest comes first, since energies count from there."""
    jobs = sustained.jobs()
    assert jobs[0].row["name"] == "idle"
    assert {job.mode for job in jobs} == {"sustained"}
    for job in jobs:
        row = job.row
        if row["name"].startswith("gemm"):
            assert row["flops"] == 2 * row["m"] * row["n"] * row["k"]
        if row["name"] in ("read", "copy"):
            assert row["bytes"] == row["elements"] * 4 * streams.BUFFERS[row["name"]]
    whole = next(job.row for job in jobs if job.row["name"] == "forward")
    assert whole["flops"] == 2 * whole["batch"] * whole["sequence"] ** 2 * whole["heads"] * whole["head_dim"]


def test_the_decode_steps_of_parts() -> None:
    """Parts of a block have the block's heads and inner width together, and the whole residual stream."""
    rows = [job.row for job in decoding.jobs()]
    assert {job.mode for job in decoding.jobs()} == {"graph"}
    for hidden, ffn, heads, kv_heads in decoding.MODELS:
        mine = [row for row in rows if row["hidden"] == hidden and row["batch"] == 1]
        for parts, row in zip(decoding.PARTS, mine, strict=True):
            assert (row["ffn"] * parts, row["heads"] * parts, row["kv_heads"] * parts) == (ffn, heads, kv_heads)
            assert row["sequence"] == 1 < row["context"]


def test_power_is_read_at_the_end_of_a_load(torch: MagicMock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings of the first seconds, when the clock has not settled, do not count."""
    asked: list[float] = []
    since = Sampler.since
    monkeypatch.setattr(Sampler, "since", lambda self, began: asked.append(began) or since(self, began))
    clock = itertools.count(0.0, 0.25)
    monkeypatch.setattr("symperf.measuring.measure.time.monotonic", lambda: next(clock))
    found = measure(600, ("power",))
    assert {row["mode"] for row in found.rows} == {"sustained"}
    assert len(found.rows) == len(sustained.jobs()) == len(asked)
    assert all(later - earlier >= 0.25 for earlier, later in itertools.pairwise(asked))
    assert torch.mm.called


def test_rows_come_as_they_are_measured(torch: MagicMock) -> None:
    """Each row is handed over at once, with its time, its mode, the device and the version."""
    taken: list[dict[str, Any]] = []
    found = measure(60, ("launch",), take=taken.append)
    assert taken == found.rows
    assert len(taken) == len(launch.jobs())
    for row in taken:
        assert row["seconds"] > 0
        assert row["device"] == "Some GPU"
        assert row["torch"] == "2.0"
    host = next(row for row in taken if row["mode"] == "host")
    assert host["seconds"] < 1e-2
    torch.cuda.empty_cache.assert_called()


def test_a_row_that_fails_is_left_out(torch: MagicMock) -> None:
    """What the device lacks is counted with its reason; the others go on."""
    del torch._scaled_mm
    torch.mm.side_effect = RuntimeError("CUDA out of memory.\nTried to allocate")
    found = measure(60, ("launch", "copy"))
    assert {row["name"] for row in found.rows if row["kind"] == "launch"} == {"kernel"}
    assert found.skipped["launch matmul: CUDA out of memory."] == 3
    assert any(row["kind"] == "copy" for row in found.rows)
    bench = Bench(torch, "Some GPU", "2.0", 2**38, 2**25)
    with pytest.raises(NotMeasuredError, match="no product in fp8"):
        gemm.product(bench, 16, 4096, 4096, "fp8")


def test_a_broken_device_ends_a_kind(torch: MagicMock) -> None:
    """After eight failures in a row the rest of the kind is left."""
    torch.mm.side_effect = RuntimeError("an illegal memory access was encountered")
    torch._scaled_mm.side_effect = RuntimeError("an illegal memory access was encountered")
    found = measure(60, ("gemm",))
    assert not found.rows
    assert sum(found.skipped.values()) == 8
    assert found.left["gemm"] == len(gemm.jobs()) - 8


def test_what_does_not_fit_is_not_tried(torch: MagicMock) -> None:
    torch.cuda.mem_get_info.return_value = (2**20, 2**40)
    bench = Bench(torch, "Some GPU", "2.0", 2**30, 2**25)
    with pytest.raises(NotMeasuredError, match=r"needs .* GB of 0.0 GB free"):
        bench.check_fits(10**9)
    with pytest.raises(NotMeasuredError, match="more than the device has to spare"):
        bench.views("bf16", 0, (16384, 28672))


def test_buffers_outgrow_the_cache(torch: MagicMock) -> None:
    """So many buffers that four times the cache is between two uses of one."""
    bench = Bench(torch, "Some GPU", "2.0", 2**38, 2**25)
    for size in (2**10, 2**20, 3 * 2**20, 2**25, 2**28):
        count = bench.rotation(size)
        assert count * max(size, 256) >= 4 * 2**25
        assert (count - 1) * size < 4 * 2**25
    assert len(bench.views("bf16", 0, (1024, 1024))) == 64
    assert len(bench.views("bf16", 0, (1024, 1024), rotate=False)) == 1


def test_the_time_ends(torch: MagicMock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows for which there is no time are counted by kind."""
    clock = itertools.count(0.0, 0.25)
    monkeypatch.setattr("symperf.measuring.measure.time.monotonic", lambda: next(clock))
    found = measure(20, ("copy", "gemm"))
    assert 0 < len(found.rows) < 100
    assert found.left["gemm"] > 900
    assert torch.randn.called


def test_times_of_the_clock(torch: MagicMock) -> None:
    """Half a millisecond between events: bursts of ten calls, or as many as the queue holds."""
    timing = Clock(torch).stream(lambda _: None)
    assert timing.spread == pytest.approx(0.0, abs=1e-9)
    assert timing.seconds == pytest.approx(MILLISECONDS * 1e-3 / (timing.repeats / 2))
    graph = Clock(torch).graph(lambda _: None, 50)
    assert graph.repeats == 4 * 50 * 2
    calls: list[int] = []
    Clock(torch).fixed(calls.append, 5)
    assert len(calls) == 3 + 2 * 5


def test_readings_of_the_clock_and_the_power() -> None:
    """Medians of what came since a moment; broken lines are none."""
    sampler = Sampler()
    assert sampler.since(0.0) == {}
    for line in ("1980, 650.5\n", "[N/A], 1\n", "\n", "1755, 700.0\n", "1755, 690.0\n"):
        sampler.take(line)
    assert sampler.since(0.0) == {"clock_mhz": 1755, "power_w": 690}


def test_the_file(torch: MagicMock, call: Any, tmp_path: Path) -> None:
    """The command writes a file that calibrate reads, and nothing is left beside it."""
    out = tmp_path / "measured.csv"
    done = call(["measure", "-o", str(out), "--only", "launch,elementwise", "--seconds", "60"])
    assert done.code == 0, done.err
    assert "Some GPU" in done.out
    rows = read(out).rows
    assert {row.kind for row in rows} == {"launch", "elementwise"}
    with out.open(newline="", encoding="utf-8") as file:
        assert list(next(csv.reader(file))) == list(COLUMNS)
    assert [path.name for path in tmp_path.iterdir()] == ["measured.csv"]
    assert torch.cuda.synchronize.called


def test_standard_output(torch: MagicMock, call: Any) -> None:
    """Without a file the rows are what is printed; with --json one object is."""
    done = call(["measure", "--only", "launch"])
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == len(launch.jobs())
    told = json.loads(call(["measure", "--only", "launch", "--json"]).out)
    assert told["rows"] == {"launch": len(launch.jobs())}
    assert len(told["measurements"]) == len(launch.jobs())
    assert torch.ones.called


def test_an_interruption_keeps_the_rows(
    torch: MagicMock, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C leaves a whole file with what was measured, and the status that says so."""
    out = tmp_path / "measured.csv"
    add = Writer.add

    def stop(self: Writer, row: dict[str, Any]) -> None:
        add(self, row)
        assert (tmp_path / "measured.csv.part").read_text(encoding="utf-8").count("\n") == self.rows + 1
        if self.rows == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Writer, "add", stop)
    done = call(["measure", "-o", str(out), "--only", "launch"])
    assert done.code == 130
    assert "interrupted: rows measured so far are kept" in done.err
    assert len(read(out).rows) == 3
    assert torch.cuda.is_available.called


def test_nothing_to_write(tmp_path: Path) -> None:
    """A file without rows is not made, and one that was there stays."""
    out = tmp_path / "measured.csv"
    out.write_text("mine", encoding="utf-8")
    Writer(out).finish()
    assert out.read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match="is a folder"):
        Writer(tmp_path)
    with pytest.raises(InputError, match="none is no folder"):
        Writer(tmp_path / "none" / "measured.csv")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--only", "gem"), "--only: found 'gem', expected launch or copy or elementwise"),
        (("--only", "gem"), "did you mean gemm?"),
        (("--only", ""), "--only: found ''"),
        (("--seconds", "0"), "--seconds: found 0, expected 1 to 86400"),
        (("--seconds", "nan"), "--seconds: found nan"),
        (("--seconds", "1m"), "found '1m', expected a number"),
    ],
)
def test_bad_options(call: Any, options: tuple[str, ...], told: str) -> None:
    done = call(["measure", *options])
    assert done.code == 2
    assert told in done.err


def test_without_a_device(torch: MagicMock, call: Any, tmp_path: Path) -> None:
    """One line and status 1; no file is made."""
    torch.cuda.is_available.return_value = False
    out = tmp_path / "measured.csv"
    done = call(["measure", "-o", str(out)])
    assert (done.code, done.out) == (1, "")
    assert done.err == "symperf: measure: PyTorch 2.0 sees no GPU\n"
    assert list(tmp_path.iterdir()) == []


def test_without_pytorch(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = call(["measure"])
    assert (done.code, done.out) == (1, "")
    assert done.err == "symperf: measure: needs PyTorch, which is not installed\n"


def test_measuring_needs_the_standard_library_only() -> None:
    """A device's machine may have PyTorch and little else: no package of symperf's own is needed there."""
    script = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'sympy', 'numba', 'rich', 'numpy', 'platformdirs', 'jinja2', 'scipy'}:\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "sys.modules['torch'] = None\n"
        "from symperf.cli import main\n"
        "sys.exit(main(['measure']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    assert done.stderr == "symperf: measure: needs PyTorch, which is not installed\n"
