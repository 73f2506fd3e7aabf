"""A probe that fires -> the addresses of the functions that are being executed, innermost first.

A rule for each address (`kinst.runtime.unwinding.unwind`) leads from a frame to its caller's. It is made once, so a
frame then costs a lookup in a table and one or two words of memory. A walk ends where there is no caller, or where a
check fails: the return address must be in code, after a call, and each frame must be above the one before.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.frame_rules import CallerRule, Rules
from kinst.runtime.unwinding.unwind import Rule
from kinst.targets.arch.facts import ArchFacts

_DEEPEST: Final = 512  # the most frames that stackdepth counts
_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_KEPT: Final = 1 << 17  # addresses whose rules are kept
_FAR: Final = 1 << 13  # bytes: a frame pointer that points so far down points to another stack

Interrupted = Callable[[int], Sequence[int] | None]


class MachineStacks:
    """The stacks of a machine; implements `kinst.runtime.clauses.environment.Stacks`."""

    def __init__(
        self,
        arch: ArchFacts,
        memory: Memory,
        rules: Rules,
        *,
        is_user: Callable[[Firing], bool] = lambda _firing: False,
    ) -> None:
        """Nothing is read until a stack is needed.

        Args:
            arch: the machine.
            memory: its memory, as clauses see it.
            rules: how to unwind the frames of its image.
            is_user: whether the CPU is in user mode.
        """
        self._rules = rules
        self._load = memory.load
        self._is_user = is_user
        self._pc = arch.pc
        self._sp, self._fp, self._link = arch.stack_pointer, arch.frame_pointer, arch.link_register
        self._here: dict[int, Rule | None] = {}  # rules by address of a probe
        self._callers: dict[int, CallerRule] = {}  # by return address
        self._reached = 0  # the end of the outermost frame in the last walk
        self._interrupted: Interrupted = lambda _sp: None

    def cross(self, interrupted: Interrupted) -> None:
        """Continue walks where an exception interrupted the kernel. `interrupted` gives the registers, in the order of
        the trap frame, that the entry code saved at a stack pointer; None if there are none, or if they are user
        mode's."""
        self._interrupted = interrupted

    def forget(self) -> None:
        """Other code may be at addresses that were seen before."""
        self._here.clear()
        self._callers.clear()

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """The PC, then return addresses, at most `frames` in all. Of user code only the PC is known here. When a tail
        call has returned, the first two are its jump and the address that it returned to, as at a plain return."""
        inner = (firing.site, firing.returned) if firing.returned else (firing.site,)
        if frames <= len(inner) or self._is_user(firing):
            return inner[:frames]
        found = [*inner, *self._callers_of(firing.regs, self._known_rule(inner[-1]), frames - len(inner))]
        while len(found) < frames:
            regs = self._interrupted(self._reached)
            if regs is None:
                break
            pc = regs[self._pc]
            found += [pc, *self._callers_of(regs, self._known_rule(pc), frames - len(found) - 1)]
        return tuple(found)

    def reach(self, firing: Firing) -> int:
        """The end of the outermost frame, or the stack pointer: everything below belongs to one stack."""
        self._reached = firing.regs[self._sp]
        if not self._is_user(firing):
            rule = self._known_rule(firing.returned or firing.site)
            self._callers_of(firing.regs, rule, _DEEPEST, is_one_stack=True)
        return self._reached

    def depth(self, firing: Firing) -> int:
        """The number of frames."""
        return len(self.stack(firing, _DEEPEST))

    def caller(self, firing: Firing) -> int:
        """Where the function returns to; 0 if unknown. At its first instruction the address is not checked."""
        if firing.returned:
            return firing.returned
        if self._is_entry(firing.site):
            return self._return_address(firing)
        found = self.stack(firing, 2)
        return found[1] if len(found) > 1 else 0

    # -- frames -------------------------------------------------------------------------------------------------------

    def _callers_of(
        self, regs: Sequence[int], rule: Rule | None, limit: int, *, is_one_stack: bool = False
    ) -> list[int]:
        load, callers = self._load, self._callers
        sp_index, fp_index = self._sp, self._fp
        sp, fp, found = regs[sp_index], regs[fp_index], list[int]()
        while rule is not None and len(found) < limit:
            base, offset, returns, register, saved_fp, is_certain = rule
            is_inner = bool(found)
            if is_inner and (returns is None or base not in (sp_index, fp_index)):
                break  # only the innermost frame's registers are all known
            cfa = offset + (sp if base == sp_index else fp if base == fp_index else regs[base])
            # A caller's frame is above its callee's; only the innermost function may have none of its own. But a frame
            # pointer can lead far down, to the stack from which code has switched to this one.
            if cfa <= sp and (cfa < sp or is_inner) and (is_one_stack or base != fp_index or sp - cfa < _FAR):
                break
            try:
                address = regs[register] if returns is None else load(cfa + returns, _WORD)
                if saved_fp is not None:
                    fp = load(cfa + saved_fp, _WORD)
            except Fault:
                break
            caller = callers.get(address) or self._caller_at(address)
            if caller is None or not (is_certain or caller.follows_call):
                break
            found.append(caller.address)
            rule, sp = caller.rule, cfa
            if caller.changes_stack and not is_one_stack:
                sp = self._loaded(sp)  # the caller's own stack pointer, at the top of the stack that it has switched to
        self._reached = sp
        return found

    def _known_rule(self, pc: int) -> Rule | None:
        return self._here[pc] if pc in self._here else self._rule_here(pc)

    def _rule_here(self, pc: int) -> Rule | None:
        """The rule at a probe's own address. A function may be entered without a call, so at its first instruction the
        return address is right, whatever comes before it."""
        rule = self._rules.here(pc)
        if rule is not None and self._is_entry(pc):
            rule = rule._replace(is_certain=True)
        if len(self._here) >= _KEPT:
            self._here.clear()
        self._here[pc] = rule
        return rule

    def _caller_at(self, address: int) -> CallerRule | None:
        """What is known about a return address; None if it cannot be one."""
        found = self._rules.caller(address)
        if found is None:
            return None
        if len(self._callers) >= _KEPT:
            self._callers.clear()
        self._callers[address] = found
        return found

    def _loaded(self, address: int) -> int:
        """A word of the stack; the address itself if it cannot be read, where the walk then ends."""
        try:
            return self._load(address, _WORD)
        except Fault:
            return address

    def frame_address(self, firing: Firing) -> int | None:
        """The canonical frame address of the function in which a probe fired: the stack pointer before the call (arm64,
        riscv64: at entry). None if it is not known."""
        rule = None if firing.returned else self._known_rule(firing.site)
        return None if rule is None else firing.regs[rule.base] + rule.offset & _MASK

    def _is_entry(self, pc: int) -> bool:
        return self._rules.is_start(pc)

    def _return_address(self, firing: Firing) -> int:
        try:
            return firing.regs[self._link] if self._link is not None else self._load(firing.regs[self._sp], _WORD)
        except Fault:
            return 0
