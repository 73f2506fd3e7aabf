"""cpp before D: the real one where there is one, and programs that play it."""

import shutil
from pathlib import Path

import pytest

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.preprocess import CppSettings, preprocess
from kinst.targets.errors import KinstError
from tests.runtime.dlang.syntax.reading import error_of, read

needs_cpp = pytest.mark.skipif(shutil.which("cpp") is None, reason="no cpp")


def fake(folder: Path, script: str) -> CppSettings:
    path = folder / "cpp"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return CppSettings(str(path), ("-DX=1", "-Uunix", "-I/tmp"), prints_includes=True)


@needs_cpp
def test_macros_and_conditions() -> None:
    text = (
        "#!/usr/sbin/dtrace -Cs\n#define PROBE BEGIN\n#ifdef X\nPROBE { trace(X); }\n#endif\n#pragma D option quiet\n"
    )
    unit = read(preprocess(text, file="", settings=CppSettings(arguments=("-DX=7",))))
    assert [type(item) for item in unit.items] == [tree.Clause, tree.Pragma]


@needs_cpp
def test_lines_are_those_of_the_program() -> None:
    text = "#!/usr/sbin/dtrace -Cs\n#define NOTHING\n/* a\n comment */\n\n\n\n\n\n\n\n\n\nBEGIN { a b; }\n"
    span = error_of(preprocess(text, file="", settings=CppSettings())).span
    assert span is not None
    assert (span.file, span.line) == ("", 14)


@needs_cpp
def test_lines_of_an_included_file_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "x.h").write_text("int x;\n")
    (tmp_path / "y.h").write_text("\n\nBEGIN { a b; }\n")
    script = tmp_path / "x.d"
    done = preprocess(
        '#include "x.h"\n#include <y.h>\n', file=str(script), settings=CppSettings(arguments=(f"-I{tmp_path}",))
    )
    span = error_of(done).span
    assert span is not None
    assert (Path(span.file).name, span.line) == ("y.h", 3)


@needs_cpp
def test_what_cpp_refuses_is_one_line_of_ours_after_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KinstError) as caught:
        preprocess("#ifdef X\nBEGIN { }\n", file="", settings=CppSettings())
    assert str(caught.value) == "the C preprocessor cpp failed with status 1"
    assert "#ifdef" in capfd.readouterr().err


@needs_cpp
def test_included_files_are_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.h").write_text("int x;\n")
    preprocess('#include "x.h"\n', file=str(tmp_path / "x.d"), settings=CppSettings(prints_includes=True))
    assert "x.h" in capfd.readouterr().err


def test_flags_are_passed_and_the_text_is_read(tmp_path: Path) -> None:
    settings = fake(tmp_path, 'for word in "$@"; do echo "/* $word */"; done; cat')
    done = preprocess("#!x\nBEGIN { }\n", file="a/b.d", settings=settings)
    words = [line[3:-3] for line in done.splitlines() if line.startswith("/*")]
    assert words[:3] == ["-D__SUNW_D=1", "-D__SUNW_D_64=1", "-D__SUNW_D_VERSION=0x0100d000"]
    assert words[3:] == ["-iquote", "a", "-H", "-DX=1", "-Uunix", "-I/tmp", "-"]
    assert done.endswith("*/\n\nBEGIN { }\n")


def test_bytes_come_through(tmp_path: Path) -> None:
    text = b'BEGIN { "\xff\xc3" }'.decode("utf-8", "surrogateescape")
    assert preprocess(text, file="", settings=fake(tmp_path, "cat")) == text


def test_no_preprocessor() -> None:
    with pytest.raises(KinstError, match="failed to run the C preprocessor /no/such: No such file or directory"):
        preprocess("", file="", settings=CppSettings("/no/such"))


def test_one_that_fails(tmp_path: Path) -> None:
    with pytest.raises(KinstError, match="failed with status 3"):
        preprocess("BEGIN { }" * 100_000, file="", settings=fake(tmp_path, "exit 3"))
