"""The same batch on a cluster: what comes of it is the same, also if its workers are killed in the middle."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.batch.cli import batch
from tests.runtime.batch.test_batch import ROOT, SAMPLES, digests, rows

distributed = pytest.importorskip("distributed", reason="no dask.distributed: pip install 'kinst-rewrite[batch]'")
dask = pytest.importorskip("dask")
TEXT = """
[[call]]
images = ["samples/kernel-arm64.elf", "samples/kernel-riscv64.elf"]
function = "hash_bytes"
inputs = "inputs"
chunk = 10

[[rewrite]]
images = "torn.elf"
probes = "fbt:::"
"""
QUIET = {"dashboard_address": None, "silence_logs": 50}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / ".typing"), str(ROOT)]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "samples").symlink_to(SAMPLES)
    (tmp_path / "torn.elf").write_bytes(b"\x7fELF")
    (tmp_path / "calls.toml").write_text(TEXT)
    return tmp_path


def inputs(folder: Path, count: int) -> None:
    (folder / "inputs").write_text("".join(f'{number}, "abcdef", {number % 6}\n' for number in range(count)))


def done(folder: Path, out: Path, *words: str) -> Result:
    options = [str(folder / "calls.toml"), "-o", str(out), "--table", "csv", *words]
    return CliRunner().invoke(batch, options, prog_name="kinst-batch")


def check(folder: Path, out: Path, result: Result, tasks: int) -> None:
    """Everything is there, once, and is what this machine finds by itself."""
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, f"{tasks} tasks done")
    assert len(digests(out)) == len(set(digests(out))) == tasks
    here = folder / "here"
    done(folder, here, "-j", "1")
    assert _lasting(out) == _lasting(here)
    assert (out / "coverage.csv").read_text() == (here / "coverage.csv").read_text()


def _lasting(folder: Path) -> list[dict[str, str]]:
    return [{name: row[name] for name in row if name not in ("seconds", "megabytes")} for row in rows(folder)]


def fnv(seed: int, data: bytes) -> int:
    for byte in data:
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    return seed


TOLD = ["9 tasks done", "call     80 done", "rewrite  1 refused"]


def test_a_cluster_finds_what_this_machine_finds(folder: Path) -> None:
    inputs(folder, 40)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **QUIET) as cluster:
        result = done(folder, folder / "out", "--dask", cluster.scheduler_address)
    assert (result.exit_code, result.stdout.splitlines()[:3]) == (0, TOLD)
    found = [int(row["result"], 16) & 0xFFFFFFFF for row in rows(folder / "out")[1:]]
    assert found[:40] == found[40:] == [fnv(seed, b"abcdef"[: seed % 6]) for seed in range(40)]


def kill(cluster: Any, journal: Path) -> None:
    """The process of one worker ends when some tasks are done, and those of all workers later; nannies start others."""
    for count, names in ((3, [0]), (30, [0, 1])):
        end = time.monotonic() + 300
        while time.monotonic() < end and (not journal.exists() or journal.read_bytes().count(b"\n") < count):
            time.sleep(0.02)
        processes = [cluster.workers[name].process for name in names]
        for process in processes:
            if process is not None and process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)


@pytest.mark.long
def test_workers_that_are_killed_lose_nothing_and_nothing_is_done_twice(folder: Path) -> None:
    inputs(folder, 600)
    out = folder / "out"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **QUIET) as cluster:
        killer = threading.Thread(target=kill, args=(cluster, out / "journal.jsonl"))
        killer.start()
        result = done(folder, out, "--dask", cluster.scheduler_address)
        killer.join()
    check(folder, out, result, 121)


def test_no_cluster_is_one_line(folder: Path) -> None:
    inputs(folder, 1)
    result = done(folder, folder / "out", "--dask", "nonsense://1")
    assert result.exit_code == 1
    assert result.stderr.startswith("kinst-batch: --dask nonsense://1: no cluster: ")
    assert result.stderr.count("\n") == 1


def certificate(folder: Path) -> dict[str, str]:
    """A certificate that vouches for itself, as dask's configuration names it for all who talk."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    own, key = folder / "own.pem", folder / "key.pem"
    words = (
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=kinst",
        "-days",
        "1",
        "-out",
        own,
        "-keyout",
        key,
    )
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return {"tls_ca_file": str(own)} | {
        f"tls_{who}_{what}": str(file)
        for who in ("client", "scheduler", "worker")
        for what, file in (("cert", own), ("key", key))
    }


def test_a_cluster_is_spoken_to_by_tls_as_dask_is_configured(folder: Path) -> None:
    """And one line says so if it is not."""
    inputs(folder, 10)
    named = certificate(folder)
    security = distributed.Security(require_encryption=True, **named)
    one = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**one, protocol="tls://", security=security, **QUIET) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        bare = done(folder, folder / "bare", "--dask", address)
        ours = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}
        with dask.config.set({f"distributed.comm.tls.{name}": named[value] for name, value in ours.items()}):
            result = done(folder, folder / "out", "--dask", address)
    assert (result.stderr, result.exit_code, result.stdout.splitlines()[:1]) == ("", 0, ["3 tasks done"])
    assert bare.exit_code == 1
    assert bare.stderr.startswith(
        f"kinst-batch: --dask {address}: no certificates: name them in dask's configuration, "
    )
    assert bare.stderr.count("\n") == 1
