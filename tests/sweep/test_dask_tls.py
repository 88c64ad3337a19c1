"""A cluster behind certificates: the same file, and no word with a scheduler that the authority has not signed."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import distributed
import pytest
from support.study_cases import SMALL, study_file, sweep_command, write_study

from symperf.common.cluster import Cluster, Scheduler
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]


def authority(folder: Path) -> tuple[str, str, str]:
    """The files of an authority that signs itself alone."""
    folder.mkdir()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run(
        [*new, "-subj", "/CN=x", "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    return str(certificate), str(certificate), str(key)


def test_the_file_is_the_same_and_strangers_are_refused(tmp_path: Path) -> None:
    mine, other = authority(tmp_path / "mine"), authority(tmp_path / "other")
    names = ("tls_ca_file", "tls_scheduler_cert", "tls_scheduler_key")
    files = dict(zip(names, mine, strict=True)) | {"tls_worker_cert": mine[1], "tls_worker_key": mine[2]}
    files |= {"tls_client_cert": mine[1], "tls_client_key": mine[2]}
    security = distributed.Security(require_encryption=True, **files)
    path, alone, spread = study_file(tmp_path, SMALL), tmp_path / "alone.csv", tmp_path / "spread.csv"
    write_study(path, alone)
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=None, silence_logs=50, security=security, protocol="tls://"
    ) as cluster:
        address = cluster.scheduler_address
        dask = ["--dask", address, "--dask-tls", ",".join(mine)]
        code, _, errors = sweep_command(str(path), "-o", str(spread), *dask)
        assert (code, errors) == (0, "")
        with pytest.raises(InputError, match="no scheduler at"):
            Cluster(Scheduler(address, other))
    assert spread.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize(
    ("address", "files", "message"),
    [
        ("tls://h:1", "a,b", "expected three files"),
        ("tls://h:1", "a,b,c", "no such file"),
        ("tcp://h:1", "a,b,c", "expected an address such as tls://"),
        (None, "a,b,c", "expected an address such as tls://"),
        ("tls://h:1", "\0,b,c", "--dask-tls"),
    ],
)
def test_files_that_are_none(address: str | None, files: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scheduler.parse(address, files)
