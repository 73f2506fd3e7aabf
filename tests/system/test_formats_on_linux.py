"""A boot of Linux into user space as other tools take it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import real_image
from tests.runtime.consumer.perfetto_reading import tracks_of
from tests.system.test_user_space import initial_file_system


@pytest.mark.long
def test_calls_of_tasks_in_a_perfetto_trace(tmp_path: Path) -> None:
    initrd, trace = tmp_path / "initrd.cpio", tmp_path / "trace"
    initrd.write_bytes(initial_file_system("amd64"))
    program = """
        fbt::vfs_*:entry, fbt::vfs_*:return, syscall:::entry, syscall:::return {}
        fbt::vfs_read:entry { @reads[execname] = count(); }
    """
    options = ["--clock", "icount", "--format", "perfetto", "-o", str(trace), "--timeout", "60"]
    result = CliRunner().invoke(run, [*options, "--initrd", str(initrd), "-n", program, str(real_image("linux-amd64"))])
    assert result.exit_code == 0, result.stderr
    tracks = tracks_of(trace)
    calls = {span.name for name, track in tracks.items() if "init 1/" in name for span in track.spans}
    assert {"read", "vfs_read", "execve"} <= calls or {"write", "vfs_write"} <= calls
    reads = [span for track in tracks.values() for span in track.spans if span.name == "vfs_read"]
    assert reads
    assert sum(track.values[-1][1] for name, track in tracks.items() if name.startswith("@reads/")) == len(reads)
