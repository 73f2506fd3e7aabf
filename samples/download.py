"""Addresses of one file -> its bytes as they come, kept on disk: what has come once is not asked for again."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from kinst.rewriter.shell.progress import Progress
from kinst.targets.errors import DownloadError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PATIENCE: Final = 60  # seconds without a byte
_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Download:
    """A file elsewhere, the same at each of its addresses, which are tried in order. `size`: its bytes, 0 if nobody
    knows."""

    addresses: Sequence[str]
    size: int = 0


@contextmanager
def arriving(download: Download, kept: Path, progress: Progress) -> Iterator[BinaryIO]:
    """The file, to be read once from its beginning to where the reader has what it wants.

    `kept` holds what has come so far, also after an error: the next time goes on behind it, and a whole file that a
    user has put there needs no network. Reading raises DownloadError.
    """
    with ExitStack() as stack:
        file = stack.enter_context(own_file(kept))
        file.seek(0)
        done = stack.enter_context(progress("downloading", download.size))
        raw = _Arriving(download, file, kept, done)
        yield stack.enter_context(io.BufferedReader(raw, _PIECE))


def own_file(path: Path) -> BinaryIO:
    """A file to read and to append to, made if it is not there. It may be in a folder where others write, and where a
    link would lead to a file of the user's. Raises OSError for one."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644), "a+b")


class _Arriving(io.RawIOBase):
    """Reads the kept file to its end, and then what is missing from elsewhere."""

    def __init__(self, download: Download, file: BinaryIO, kept: Path, done: Callable[[int], None]) -> None:
        self._download, self._file, self._kept, self._done = download, file, kept, done
        self._response: HTTPResponse | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill as much of `buffer` as is at hand; 0 at the end."""
        view = memoryview(buffer).cast("B")
        data = b"" if self._response else self._file.read(len(view))
        if not data and not 0 < self._download.size <= self._file.tell():
            data = self._from_elsewhere(len(view))
            self._file.write(data)
        view[: len(data)] = data
        self._done(len(data))
        return len(data)

    def close(self) -> None:
        """End the connection."""
        if self._response:
            self._response.close()
        super().close()

    def _from_elsewhere(self, size: int) -> bytes:
        try:
            self._response = self._response or self._opened()
            data = self._response.read(size)
        except (OSError, HTTPException) as error:
            raise DownloadError(self._says(error)) from None
        if not data and self._download.size:
            raise DownloadError(self._says(EOFError("it ended early")))
        return data

    def _opened(self) -> HTTPResponse:
        """A connection that goes on behind what is kept. Raises the last address's OSError."""
        begin = self._file.tell()
        errors: list[OSError] = []
        for address in self._download.addresses:
            try:
                request = Request(address, headers={"Range": f"bytes={begin}-"})
                response: HTTPResponse = build_opener().open(request, timeout=_PATIENCE)
            except HTTPError as error:
                error.close()
                errors.append(error)
            except OSError as error:
                errors.append(error)
            else:
                if response.status == 200:  # a server that knows no ranges begins anew
                    _skip(response, begin)
                return response
        raise errors[0]

    def _says(self, error: Exception) -> str:
        why = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
        first, came = self._download.addresses[0], self._file.tell()
        go_on = f"repeat the command, which goes on behind the first {came:,} bytes" if came else "repeat the command"
        return (
            f"{first}: cannot be downloaded: {why}: {go_on}, or get one of these elsewhere, put it here as "
            f"{self._kept}, and repeat: {' '.join(self._download.addresses)}"
        )


def _skip(response: HTTPResponse, count: int) -> None:
    while count and (data := response.read(min(count, 1 << 20))):
        count -= len(data)
