"""Assembly text of amd64 and arm64 -> bytes that we know."""

import pytest

from kinst.rewriter.assemble import assemble
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import UsageError


@pytest.mark.parametrize(
    ("machine", "text", "code"),
    [
        ("arm64", "mov x0, #10; movk w1, #16, lsl #16", "400180d20102a072"),
        ("arm64", "ldr x12, [x10, #64]!", "4c0d44f8"),
        ("arm64", "fmov d0, #1.5", "00106f1e"),
        ("arm64", "add v1.4s, v2.4s, v3.4s", "4184a34e"),
        ("arm64", "mov w0, v1.s[1]", "203c0c0e"),
        ("amd64", "mov $10, %eax; lea 16(%rax,%rbx,8), %rcx", "b80a000000488d4cd810"),
        ("amd64", "fld %st(1); movdqa %xmm10, %xmm11", "d9c166450f6fda"),
        ("amd64", '.ascii "12 34"', "3132203334"),
        ("amd64", ".byte 12, 0x0c, 014", "0c0c0c"),
    ],
)
def test_numbers_of_every_base_are_what_they_say(machine: str, text: str, code: str) -> None:
    assert assemble(arch_by_name(machine), text).hex() == code


@pytest.mark.parametrize(
    ("machine", "text"), [("riscv64", "nop"), ("amd64", "mov 12"), ("arm64", "mov x0, #99999999999999999999999")]
)
def test_what_does_not_assemble_is_told_with_its_text(machine: str, text: str) -> None:
    with pytest.raises(UsageError, match=machine if machine == "riscv64" else text):
        assemble(arch_by_name(machine), text)
