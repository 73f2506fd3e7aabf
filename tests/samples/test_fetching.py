"""kinst-samples --fetch: the file of a package, whole or not there, from servers as they are: slow, gone, or wrong."""

import hashlib
import io
import lzma
import random
import shutil
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.rewriter.shell.progress import silent
from kinst.samples import fetching
from kinst.samples.command import copy_samples
from kinst.samples.debian_images import IMAGES
from kinst.samples.debian_package import system_mirror
from kinst.samples.download import Download
from kinst.samples.fetching import extracted
from kinst.targets.errors import DownloadError
from tests.images import real_image

CONTENT = random.Random(1).randbytes(100_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
MEMBER = r"usr/lib/firm\.elf"


def package() -> bytes:
    """A Debian package with a folder, a link and a file, whose archive of files does not compress."""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as archive:
        for name, kind, content in (
            ("./usr/", tarfile.DIRTYPE, b""),
            ("./usr/lib/link", tarfile.SYMTYPE, b""),
            ("./usr/lib/firm.elf", tarfile.REGTYPE, CONTENT),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            archive.addfile(member, io.BytesIO(content))
    packed = lzma.compress(files.getvalue(), preset=0)
    members = ((b"debian-binary", b"2.0\n"), (b"control.tar.xz", b"odd"), (b"data.tar.xz", packed))
    return b"!<arch>\n" + b"".join(
        name.ljust(48) + str(len(data)).encode().ljust(10) + b"`\n" + data + b"\n" * (len(data) % 2)
        for name, data in members
    )


@dataclass
class Server:
    """What a mirror answers. `cut`: bytes after which it breaks the first answer off; `asked`: ranges asked for."""

    data: bytes = field(default_factory=package)
    cut: int | None = None
    has_ranges: bool = True
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def download(self, *names: str) -> Download:
        return Download([f"http://127.0.0.1:{self.port}/{name}" for name in names or ("firm.deb",)], len(self.data))

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path != "/firm.deb":
            request.send_error(404)
            return
        self.asked.append(request.headers["Range"])
        begin = int(self.asked[-1].removeprefix("bytes=").rstrip("-")) if self.has_ranges else 0
        request.send_response(206 if self.has_ranges else 200)
        request.send_header("Content-Length", str(len(self.data) - begin))
        request.end_headers()
        end, self.cut = self.cut, None
        request.wfile.write(self.data[begin:end])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  http.server's own
            pass

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield served
        http.shutdown()
        thread.join()


def fetch(download: Download, folder: Path, sha256: str = DIGEST) -> bytes:
    path = folder / "image.elf"
    assert extracted(download, MEMBER, path, silent, sha256) == DIGEST
    assert [one.name for one in folder.iterdir()] == ["image.elf"]
    return path.read_bytes()


@pytest.mark.parametrize("ranges", ["ranges", "no ranges"])
@pytest.mark.parametrize("cut", [0, 5, 200, 50_000])
def test_a_download_that_broke_off_goes_on(cut: int, ranges: str, server: Server, tmp_path: Path) -> None:
    server.cut, server.has_ranges = cut, ranges == "ranges"
    with pytest.raises(DownloadError, match=r"firm\.deb: cannot be downloaded: .*repeat the command"):
        fetch(server.download(), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["package.deb"]
    assert (tmp_path / "package.deb").stat().st_size == cut

    assert fetch(server.download(), tmp_path) == CONTENT
    assert server.asked == ["bytes=0-", f"bytes={cut}-"]


def test_the_next_address_has_what_the_first_forgot(server: Server, tmp_path: Path) -> None:
    assert fetch(server.download("gone.deb", "firm.deb"), tmp_path) == CONTENT


def test_what_nobody_has_names_what_to_get(server: Server, tmp_path: Path) -> None:
    download = server.download("gone.deb", "lost.deb")
    with pytest.raises(DownloadError) as error:
        fetch(download, tmp_path)
    one, two = download.addresses
    assert str(error.value) == (
        f"{one}: cannot be downloaded: HTTP Error 404: Not Found: repeat the command, or get one of these elsewhere, "
        f"put it here as {tmp_path / 'package.deb'}, and repeat: {one} {two}"
    )


def test_a_package_that_is_put_there_needs_no_network(server: Server, tmp_path: Path) -> None:
    (tmp_path / "package.deb").write_bytes(server.data)
    assert fetch(server.download(), tmp_path) == CONTENT
    assert server.asked == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: b"<html>" + data, "this is no Debian package"),
        (lambda data: data[:300] + bytes(64) + data[364:], "the package is damaged: "),
        (lambda data: data[:56] + b"many      " + data[66:], "the package is damaged: "),
        (lambda data: data.replace(b"data.tar.xz", b"data.tar.zz"), "a Debian package without files"),
    ],
)
def test_what_is_no_package_is_removed(damage: object, says: str, server: Server, tmp_path: Path) -> None:
    assert callable(damage)
    server.data = damage(server.data)
    with pytest.raises(DownloadError, match=rf"firm\.deb: {says}.*: what came is removed; repeat the command$"):
        fetch(server.download(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_not_taken(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=f"SHA-256 {DIGEST} is not {'0' * 64}: what came is removed"):
        fetch(server.download(), tmp_path, "0" * 64)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://some.org/debian/\n", "http://some.org/debian"),
        ("sources.list", "# none\ndeb [arch=amd64] https://some.org/debian trixie main\n", "https://some.org/debian"),
        ("sources.list", "deb http://archive.ubuntu.com/ubuntu noble main\n", None),
        ("sources.list.d/old.save", "deb http://some.org/debian trixie main\n", None),
    ],
)
def test_the_mirror_is_that_of_apt(name: str, text: str, mirror: str | None, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert system_mirror(tmp_path) == mirror


def test_an_image_comes_to_where_the_documents_have_it(tmp_path: Path) -> None:
    real_image("opensbi-1.6")
    for _ in range(2):  # the second time it is there already
        result = CliRunner().invoke(copy_samples, ["--fetch", "opensbi-1.6", str(tmp_path)])
        assert result.output == f"{tmp_path}/opensbi/fw_jump.elf: opensbi 1.6-1 of Debian, 180,416 bytes\n"
    assert (tmp_path / "opensbi" / "fw_jump.elf").read_bytes() == real_image("opensbi-1.6").read_bytes()


def test_another_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "opensbi" / "fw_jump.elf"
    place.parent.mkdir()
    place.write_text("mine")
    result = CliRunner().invoke(copy_samples, ["--fetch", "opensbi-1.6", str(tmp_path)])
    says = f"{place}: is there already and is not opensbi-1.6: remove it, or name another folder"
    assert (result.exit_code, result.output, place.read_text()) == (2, f"kinst-samples: {says}\n", "mine")


def test_a_damaged_cache_is_fetched_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a network, which is what it says."""
    monkeypatch.setenv("KINST_IMAGES", str(tmp_path / "cache"))
    monkeypatch.delenv("no_proxy", raising=False)
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:1")
    kept = tmp_path / "cache" / "opensbi-1.6" / "image.elf"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(bytes(IMAGES["opensbi-1.6"].size))
    result = CliRunner().invoke(copy_samples, ["--fetch", "opensbi-1.6", str(tmp_path)])
    assert result.exit_code == 1
    assert f"put it here as {kept.parent / 'package.deb'}, and repeat: " in result.output


@pytest.mark.parametrize("name", ["lock", "package.deb"])
def test_a_link_in_the_cache_leads_to_no_file_of_the_users(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cache that others can write to, as KINST_IMAGES may name: the lock emptied the file, a package was added."""
    monkeypatch.setenv("KINST_IMAGES", str(tmp_path / "cache"))
    mine, link = tmp_path / "mine", tmp_path / "cache" / "opensbi-1.6" / name
    mine.write_text("what I need")
    link.parent.mkdir(parents=True)
    link.symlink_to(mine)
    result = CliRunner().invoke(copy_samples, ["--fetch", "opensbi-1.6", str(tmp_path)])
    assert (result.exit_code, mine.read_text()) == (1, "what I need")
    assert result.output == f"kinst-samples: {link}: Too many levels of symbolic links\n"


def test_what_is_copied_from_the_cache_is_what_was_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody changes the image between the two."""
    kept = tmp_path / "cache" / "opensbi-1.6" / "image.elf"
    kept.parent.mkdir(parents=True)
    shutil.copy(real_image("opensbi-1.6"), kept)
    monkeypatch.setenv("KINST_IMAGES", str(tmp_path / "cache"))
    done = fetching.fetched

    def changed(*words: Any) -> Path:
        path = done(*words)
        path.write_bytes(bytes(IMAGES["opensbi-1.6"].size))
        return path

    monkeypatch.setattr(fetching, "fetched", changed)
    result = CliRunner().invoke(copy_samples, ["--fetch", "opensbi-1.6", str(tmp_path)])
    why = f"is not opensbi-1.6 any more: somebody else writes to {tmp_path / 'cache'}"
    assert (result.exit_code, result.output) == (1, f"kinst-samples: {kept}: {why}\n")
    assert not list(tmp_path.glob("opensbi/*"))


def test_every_image_has_a_place_of_its_own() -> None:
    assert len({image.place for image in IMAGES.values()}) == len(IMAGES)
