"""keystone in a process of its own, which some input ends."""

import pytest

from kinst.rewriter.patching.assembler import Assembler
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.errors import UsageError


def test_what_ends_keystone_is_an_error_and_the_next_instruction_is_assembled() -> None:
    with Assembler(ARM64, is_plain=True) as assembler:
        with pytest.raises(UsageError, match=r"'b \.\+0x100000000': keystone fails on it"):
            assembler.encode("b .+0x100000000", 0)
        assert assembler.encode("ret", 0).hex() == "c0035fd6"


def test_the_syntax_of_amd64_is_chosen() -> None:
    with Assembler(AMD64, is_plain=True) as intel, Assembler(AMD64, is_plain=False) as own:
        assert intel.encode("mov eax, ebx", 0) == own.encode("mov %ebx, %eax", 0)
        with pytest.raises(UsageError):
            intel.encode("mov %ebx, %eax", 0)
