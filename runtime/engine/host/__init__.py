"""The emulator's callbacks that are machine code of the host: sources, what they are assembled to, and what they share
with Python.

`NAME.py` declares the state of a routine, `NAME.HOST.s` is its source, and `assembled/NAME.HOST.bin` what it is
assembled to; a test assembles it again. A new field is a line in `NAME.py`, whose place in the class is its place in
memory, and `poe host-code`. A host that has no code is served by Python.

A source has an instruction a line, in Intel's syntax for x86_64, and is not read by an assembler before these are
replaced: `state.next` is the offset of a field, `sizeof(row)` the size of a layout, `state.(next, end)` the offset of
two fields that one instruction reads and that must therefore lie side by side, `HASH` a constant, and `HASH.1` its
bits 31:16 (aarch64 loads 16 bits at a time). A comment is behind //, and a label ends with a colon.

The two hosts call and are called like this:

    | host    | arguments          | result | a function may change  | returns to           | stack           |
    |---------|--------------------|--------|------------------------|----------------------|-----------------|
    | x86_64  | rdi rsi rdx rcx r8 | rax    | these, r9 to r11       | what call has pushed | 16 at each call |
    | aarch64 | x0 to x7           | x0     | x0 to x17, x30         | x30                  | 16 at any time  |

The last column is what the stack pointer is a multiple of; on x86_64 a function begins with 8 bytes less. A routine
that ends with a jump to a function leaves all arguments as they were, and that function returns to the emulator. esi
and w1 are the lower 32 bits of rsi and x1; to write them sets the upper ones to 0.
"""
