"""A program of this machine itself, every instruction of which counts, run by the processor that runs the tests."""

import platform
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import rewrite
from tests.images import at_hand, real_image

SCRIPT = r"""
seq 1 3000 | $b gzip -c | $b gunzip -c | $b md5sum
seq 1 3000 | $b bzip2 -c | $b bunzip2 | $b sha256sum
echo "hello world 123" | $b sed -E 's/([a-z]+) ([a-z]+)/\2 \1/; y/abc/xyz/; s/[0-9]+/<&>/g'
$b printf '%s %d %5.2f %x %c %%\n' abc 42 3.14159 255 q
$b awk 'BEGIN { n = split("a,b,c", z, ","); printf "%d %5.3f %e %s\n", n, 22 / 7, 1e10, toupper(z[2]) }'
$b factor 1001 600851475143; $b cal 1 2024; echo abc | $b base64 | $b od -c; $b dc -e '5 7 * p'
f() { local x=$1; case $x in a*) echo A$x;; [0-9]) echo N;; *) echo other;; esac; }; f abc; f 5; f z
for i in 1 2 3; do echo $((i * i + (i << 2) % 5)); done; (echo sub) & wait; echo ${x:-none} ${#PATH}
"""


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="another machine's program")
@pytest.mark.parametrize("name", at_hand("busybox-amd64"))
def test_a_program_goes_on_as_it_did(name: str, tmp_path: Path) -> None:
    folders = [tmp_path / which for which in ("plain", "counted")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "busybox").write_bytes(real_image(name).read_bytes())
    words = [
        str(folders[0] / "busybox"),
        "--standalone",
        "--probe",
        "kinst:::",
        "-q",
        "-o",
        str(folders[1] / "busybox"),
    ]
    result = CliRunner().invoke(rewrite, words)
    assert result.exit_code == 0, result.output
    shown = [run(folder / "busybox") for folder in folders]
    assert shown[0].count("\n") > 20
    assert shown[0] == shown[1]


def run(busybox: Path) -> str:
    busybox.chmod(0o755)
    done = subprocess.run(
        [busybox, "sh", "-c", f"b={busybox}; cd /{SCRIPT}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.stdout + done.stderr
