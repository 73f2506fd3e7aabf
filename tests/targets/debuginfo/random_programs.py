"""Seeds -> C programs that are full of calls of small inline functions, each call on a line of its own kind: loads that
compilers move (as Linux's `current`), tests of bits, lists. They begin at `_start` and end at `end_of_program`."""

import random

INLINES = ("get_current", "test_bit", "list_empty", "mix", "smaller", "pending", "bump")
# With -DINLINE= and -DLOAD=, an instruction that loads current_task.
_HEAD = """
typedef unsigned long u64;
struct list { struct list *next, *prev; };
struct task { u64 flags; long a[8]; struct list links; struct task *parent; };
struct task tasks[2], *current_task;
u64 in[256], flags;
unsigned at;
long memory[64];
#define NEXT() (in[at++ & 255])
INLINE struct task *get_current(void)
{ struct task *task; asm(LOAD : "=r"(task)); return task; }
INLINE int test_bit(int n, const u64 *word)
{ return (*word >> n) & 1; }
INLINE int list_empty(const struct list *head)
{ return head->next == head; }
INLINE long mix(long a, long b)
{ return a * 31 + b; }
INLINE long smaller(long a, long b)
{ if (a > b) return b; return a; }
INLINE void bump(long *to, long by)
{ *to += by; }
INLINE int pending(int n)
{
    struct task *task =
        get_current();
    if (
        test_bit(n, &task->flags))
        return 1;
    return
        list_empty(&task->links);
}
__attribute__((noipa)) long other(long x) { memory[x & 63] ^= x; return x + at; }
__attribute__((noipa)) void end_of_program(void) { asm volatile(""); }
"""
_START = """
void _start(void)
{
    u64 state = 12345;
    long x = 1;
    current_task = tasks;
    for (int k = 0; k < 2; k++) {
        tasks[k].flags = 0x55 + 13 * k;
        tasks[k].parent = &tasks[!k];
        tasks[k].links.next = &tasks[0].links;
        for (int n = 0; n < 8; n++)
            tasks[k].a[n] = 77 * n + k;
    }
    for (int k = 0; k < 256; k++)
        in[k] = (state = state * 6364136223846793005ul + 1442695040888963407ul) >> 33;
    for (int round = 0; round < 12; round++) {
"""
_VALUES = (
    "get_current()->a[{n}]", "get_current()->parent->a[{n}]", "test_bit({n}, &flags)", "mix(x, {n})",
    "smaller(x, p[{n}])", "pending({n})", "list_empty(&tasks[0].links)",
)  # fmt: skip
_STATEMENTS = ("bump(&p[{n}], x);", "p[{n}] = x;", "x = other(x);", "y ^= x >> 3;", "x += y;")


class Program:
    """Writes one."""

    def __init__(self, seed: int, functions: int = 10) -> None:
        self._choose = random.Random(seed)
        self._lines: list[str] = []
        for number in range(functions):
            self._lines += [f"__attribute__((noipa)) long f{number}(long x, long *p)", "{", "long y = 7;"]
            self._block(3, self._choose.randrange(4, 9))
            self._lines += ["return x + y;", "}"]
        calls = "".join(f"x = f{number}(x, memory);\n" for number in range(functions))
        self.source = _HEAD + "\n".join(self._lines) + _START + calls + "}\nend_of_program();\n}\n"

    def _block(self, depth: int, statements: int) -> None:
        for _ in range(statements):
            kind = self._choose.random()
            if kind < 0.4:
                self._lines.append(f"x {self._choose.choice(('+', '-', '^'))}= {self._value()};")
            elif kind < 0.65 or not depth:
                self._lines.append(self._choose.choice(_STATEMENTS).format(n=self._choose.randrange(8)))
            elif kind < 0.97:
                self._nested(depth - 1)
            else:
                self._lines.append(f"if ({self._bit()}) return x;")

    def _nested(self, depth: int) -> None:
        head = self._choose.choice(
            (
                f"if ({self._bit()}) {{",
                f"if ({self._bit()} &&\n{self._value()}) {{",
                f"for (u64 n{depth} = NEXT() & 3; n{depth}; n{depth}--) {{",
            )
        )
        self._lines.append(head)
        self._block(depth, self._choose.randrange(1, 4))
        if head.startswith("if") and self._choose.random() < 0.5:
            self._lines.append("} else {")
            self._block(depth, self._choose.randrange(1, 4))
        self._lines.append("}")

    def _value(self) -> str:
        return self._choose.choice(_VALUES).format(n=self._choose.randrange(8))

    def _bit(self) -> str:
        return f"NEXT() & {1 << self._choose.randrange(5)}"
