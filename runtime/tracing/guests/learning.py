"""--learn: a guest waits for a register that nobody models -> a rule that lets it go on, told and kept in a file."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Final

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.machine.learning.deciding import Before, Deciding, Decision
from kinst.runtime.machine.learning.device_values import DeviceValues
from kinst.runtime.machine.learning.loops import Loop
from kinst.runtime.machine.learning.polls import Poll, Polls
from kinst.runtime.machine.learning.scratch import Allowance, Scratch
from kinst.runtime.machine.physical.unmodelled import Register
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.host.learn_request import LearnRequest
from kinst.runtime.tracing.host.whereabouts import Whereabouts
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.machines.learned_file import Assumed, first_text, rule_text, with_rule

_WORK: Final = 400_000  # that a poll is worth: some seconds
_MOST_CHANGES: Final = 64  # of one register, which may have a bit for each of as many devices
_NUMBER: Final = re.compile(r"(?<![\w.])(-?(?:0x[0-9a-f]+|\d+))(?:, lsl #(\d+))?")


class Learner:
    """What one machine learns."""

    def __init__(self, request: LearnRequest, system: System, where: Whereabouts, tell: Callable[[str], None]) -> None:
        """`tell` is called with a line for each thing that is learned.

        Raises:
            UsageError: the board says nothing of such registers.
        """
        if not system.unmodelled.is_used:
            raise UsageError(
                f'--learn: {system.facts.name} has no [registers]: write unnamed = "last" there, in a board file'
            )
        self._request, self._system, self._where, self._tell = request, system, where, tell
        self._values = DeviceValues(system.clock.now)
        self._polls = Polls(system.clock.now, lambda: system.current.number, system.yield_cpu)
        self._scratch: Scratch | None = None
        self._flips: dict[Register, int] = {}
        self._changes: dict[Register, int] = {}
        self._places: dict[Register, int] = {}  # the PC of the read that its rule was made for
        self._given_up: set[tuple[Register, int]] = set()
        system.accesses.watch(self._values.note)
        system.unmodelled.watch(self._polls.note)

    def check(self) -> None:
        """Between two turns: look at what polls."""
        for poll in self._polls.take():
            began, register = time.monotonic_ns(), poll.register
            if self._changes.get(register, 0) < _MOST_CHANGES:
                self._look_at(poll)
            self._system.clock.stand_still(time.monotonic_ns() - began)

    def _look_at(self, poll: Poll) -> None:
        scratch = self._scratch = self._scratch or Scratch(self._system, self._values)
        scratch.take(poll.cpu)
        loop = Loop(scratch, poll.register, Allowance(scratch, _WORK))
        decision = self._decided(loop, poll.register) if loop.is_loop else None
        if decision is not None:
            self._follow(poll.register, loop, decision)
        elif not poll.put_off() and loop.is_loop:
            self._give_up(poll, loop)

    def _decided(self, loop: Loop, register: Register) -> Decision | None:
        before = Before(
            self._flips.get(register, 0),
            is_same_place=self._places.get(register) == loop.anchor.pc,
            has_other_readers=len(register.places) > 1,
        )
        return Deciding(loop, register.rule, 8 * register.size, before, self._constants).decide()

    def _follow(self, register: Register, loop: Loop, decision: Decision) -> None:
        rule = decision.rule
        self._flips[register] = self._flips.get(register, 0) | decision.flips
        self._changes[register] = self._changes.get(register, 0) + 1
        self._places[register] = loop.anchor.pc
        register.follow(rule)
        self._polls.begin_anew(register)
        who = self._where.function(loop.anchor.pc)
        also = f" (also: {decision.others})" if decision.others else ""
        self._tell(f"learned: {who} waits for {_where(register)}: {decision.why}{also}; it reads {rule} from now on")
        self._keep(Assumed(register.address, register.size, rule, who, f"{decision.why}{also}"))

    def _give_up(self, poll: Poll, loop: Loop) -> None:
        if (poll.register, loop.anchor.pc) not in self._given_up:
            self._given_up.add((poll.register, loop.anchor.pc))
            who = self._where.function(loop.anchor.pc)
            what = f"{who} reads {_where(poll.register)} over and over"
            self._tell(f"not learned: {what}, and nothing that was tried in place of {loop.given:#x} leaves its loop")

    def _keep(self, assumed: Assumed) -> None:
        """Write the file anew, with what was learned; under its name there is always a whole one."""
        file = self._request.file
        try:
            text = file.read_text() if file.exists() else ""
            text = text or first_text(self._request.extends or self._system.facts.name)
            changed = with_rule(text, self._system.facts, assumed)
            if changed is None:
                rule = f"{assumed.address:#x}: reads = {rule_text(assumed.rule)}"
                self._tell(f"not kept: {file} has the register in a form that --learn does not change: {rule}")
                return
            with replaced_file(file) as stream:
                stream.write(changed.encode())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "is no TOML file any more"
            raise MachineError(f"--learn {file}: {why}") from None

    def _constants(self, pc: int) -> Iterator[int]:
        """The numbers in an instruction."""
        code = self._system.instruction(pc)
        lines = disassemble(self._system.arch, code, pc) if code else []
        for number, shift in _NUMBER.findall(lines[0].text) if lines else ():
            yield int(number, 0) << int(shift or 0)


def _where(register: Register) -> str:
    address = f"{register.address:#x}"
    return register.name if register.name == address else f"{register.name} ({address})"
