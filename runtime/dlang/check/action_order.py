"""Which actions may follow which in a clause: the rules of speculation, commit and recording (dt_cc.c)."""

from dataclasses import dataclass

from kinst.runtime.dlang.syntax.errors import DError, Span


@dataclass(slots=True)
class ClauseState:
    """What the statements of one clause have done so far. The rules are about order (DTrace Guide, "Speculative
    Tracing"): a clause has one record, which goes either to the principal buffer or to a speculation. So speculate()
    must come before anything that records, and what commit() moves must be complete when it runs."""

    has_recorded: bool = False
    has_aggregated: bool = False
    has_committed: bool = False
    has_speculated: bool = False
    has_exited: bool = False
    destructive: tuple[str, ...] = ()  # its destructive functions and actions


def note_recording(state: ClauseState, span: Span) -> None:
    """Note an action that records data, which may not follow commit(). Raises DError: D_DREC_COMM."""
    if state.has_committed:
        raise DError("D_DREC_COMM", "data-recording actions may not follow commit( )", span)
    if not state.has_speculated:  # after speculate() it records into the speculation, which may be committed
        state.has_recorded = True


def note_exit(state: ClauseState, span: Span) -> None:
    """Note exit(), which records its status. Raises DError: D_EXIT_SPEC, D_DREC_COMM."""
    if state.has_speculated:
        raise DError("D_EXIT_SPEC", "exit( ) may not follow speculate( )", span)
    note_recording(state, span)
    state.has_exited = True


def note_aggregating(state: ClauseState, span: Span) -> None:
    """Note an aggregation: for the actions after it, it counts as recording. Raises DError: D_AGG_COMM, D_AGG_SPEC."""
    if state.has_committed:
        raise DError("D_AGG_COMM", "aggregating actions may not follow commit( )", span)
    if state.has_speculated:
        raise DError("D_AGG_SPEC", "aggregating actions may not follow speculate( )", span)
    state.has_aggregated = state.has_recorded = True


def note_destructive(state: ClauseState, name: str, span: Span) -> None:
    """Refuse a destructive action, `name`, after speculate(). Raises DError: D_ACT_SPEC."""
    if state.has_speculated:
        raise DError("D_ACT_SPEC", "destructive actions may not follow speculate( )", span)
    state.destructive = *state.destructive, name


def note_speculate(state: ClauseState, span: Span) -> None:
    """Note speculate(), which must come first and only once. Raises DError: D_SPEC_SPEC, D_SPEC_COMM, D_SPEC_DREC."""
    if state.has_speculated:
        raise DError("D_SPEC_SPEC", "speculate( ) may not follow speculate( )", span)
    if state.has_committed:
        raise DError("D_SPEC_COMM", "speculate( ) may not follow commit( )", span)
    if state.has_recorded:
        raise DError("D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)", span)
    state.has_speculated = True


def note_commit(state: ClauseState, span: Span) -> None:
    """Note commit(), of which a clause may have one. Raises DError: D_COMM_COMM, D_COMM_DREC."""
    if state.has_committed:
        raise DError("D_COMM_COMM", "commit( ) may not follow commit( )", span)
    if state.has_recorded:
        raise DError("D_COMM_DREC", "commit( ) may not follow data-recording action(s)", span)
    state.has_committed = True
