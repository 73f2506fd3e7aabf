"""Instructions of groups and their tasks -> the templates of their trampolines, or why there is none."""

import numpy as np

from kinst.rewriter.standalone.code.laying import Pieces, first_of_groups
from kinst.rewriter.standalone.code.parts import HERE, NEXT, OPERAND, TARGET, Mask, Numbers
from kinst.rewriter.standalone.code.templates import NOTHING, Templates
from kinst.rewriter.standalone.code.trampoline import Rows, Tasks
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow

_FALLS = (Flow.NEXT, Flow.BRANCH)
_DIRECT = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


def pieces(templates: Templates, rows: Rows, tasks: Tasks, sites: Numbers) -> tuple[Pieces, Numbers]:
    """For each row its task and the displaced instruction; after the last row of a group the jump back.

    Args:
        templates: of the machine.
        rows: whole groups.
        tasks: of the sites.
        sites: the number of the site that each row is, or -1.

    Returns:
        The pieces, and for each group the reason why it cannot be displaced, else 0.
    """
    rules, is_last = templates.generator.rules, np.append(rows.group[1:] != rows.group[:-1], True)
    # A 2-byte instruction (C.*) in a group proves that the CPU has the compressed ones.
    compact = np.unique(rows.group[rows.size == rules.compact])
    shapes = templates.generator.shapes(rows)
    template = np.full((len(rows), 3), NOTHING)
    template[:, 0] = templates.tasks(tasks, sites, rows, np.isin(rows.group, compact))
    template[:, 1] = templates.moved(rows, shapes)
    # After an unconditional jump, a return or a trap nothing falls through: no jump back is needed.
    leaves = np.flatnonzero(is_last & is_one_of(rows.flow, _FALLS))
    template[leaves, 2] = templates.leaving(rows.dead_after[leaves])
    goal, is_lost = _inside(rows, follows=rules.follows)
    why = np.zeros((len(rows), 5), np.int64)
    # In this order: the first reason of a group is the one that users see.
    why[:, :3] = templates.columns().refused[template]
    why[:, 3] = (~is_last & is_one_of(rows.flow, rules.unfinished)) * templates.reason(rules.why_unfinished)
    why[:, 4] = is_lost * templates.reason(rules.why_inside)
    row = np.repeat(np.arange(len(rows)), 3)
    values = {name: column[np.maximum(sites, 0)] for name, column in tasks.values.items()}
    values |= {HERE: rows.address, NEXT: rows.address + rows.size.view(np.uint64)}
    values |= {TARGET: rows.target, OPERAND: shapes.operand}
    found = Pieces(template.reshape(-1), row, rows.group[row], rows.code, rows.size, goal, values)
    return found, first_of_groups(why.reshape(-1), np.repeat(rows.group, why.shape[1]), int(rows.group[-1]) + 1)


def _inside(rows: Rows, *, follows: bool) -> tuple[Numbers, Mask]:
    """For each row the row of its group that it branches to, else -1; and which rows branch to what is displaced and
    cannot be retargeted.

    The first instruction of a group may always be branched to: the jump to the trampoline is there. Only where branches
    follow displaced instructions do they go to the copy instead.
    """
    first = np.searchsorted(rows.group, rows.group)
    last = np.searchsorted(rows.group, rows.group, "right") - 1
    start = rows.address[first] + np.uint64(not follows)
    is_inside = is_one_of(rows.flow, _DIRECT) & (start <= rows.target)
    is_inside &= rows.target < rows.address[last] + rows.size[last].view(np.uint64)
    inside = np.flatnonzero(is_inside)
    at = np.minimum(np.searchsorted(rows.address, rows.target[inside]), len(rows) - 1)
    is_found = follows & (rows.address[at] == rows.target[inside]) & (rows.group[at] == rows.group[inside])
    goal, lost = np.full(len(rows), -1), np.zeros(len(rows), np.bool_)
    goal[inside], lost[inside] = np.where(is_found, at, -1), ~is_found
    return goal, lost
