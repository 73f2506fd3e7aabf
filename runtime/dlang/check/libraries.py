"""The translations that DTrace's libraries define for every program: curpsinfo, curlwpsinfo, curcpu.

The members are D's own variables under other names, so that their values come from the guest's profile, too. Members
without such a variable are left out: using one is D_XLATE_NOCONV, and not a plausible 0.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.declared import Inline
from kinst.runtime.dlang.check.operands import TRANSLATED, Operand, Translation, Translator
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.types.layout import Layout
from kinst.runtime.dlang.types.types import CHAR, INT, UINT
from kinst.targets.c_types import Aggregate, AggregateKind, Array, CType, Pointer, Typedef

_NOWHERE: Final = Span("", 1, 1, 0, "")
_PID: Final = Typedef("pid_t", INT)
_ID: Final = Typedef("id_t", INT)
_UID: Final = Typedef("uid_t", UINT)
_GID: Final = Typedef("gid_t", UINT)

# struct -> members: name, type, and the variable that the member stands for
_PSINFO: Final[tuple[tuple[str, CType, str], ...]] = (
    ("pr_pid", _PID, "pid"),
    ("pr_ppid", _PID, "ppid"),
    ("pr_uid", _UID, "uid"),
    ("pr_euid", _UID, "uid"),
    ("pr_gid", _GID, "gid"),
    ("pr_egid", _GID, "gid"),
    ("pr_fname", Array(CHAR, 16), "execname"),
    ("pr_psargs", Array(CHAR, 80), "execargs"),
)
_LWPSINFO: Final[tuple[tuple[str, CType, str], ...]] = (
    ("pr_lwpid", _ID, "tid"),
    ("pr_onpro", INT, "cpu"),
)
_CPUINFO: Final[tuple[tuple[str, CType, str], ...]] = (("cpu_id", Typedef("processorid_t", INT), "cpu"),)


def _inline(name: str, tag: str, members: tuple[tuple[str, CType, str], ...]) -> Inline:
    """An inline for a pointer to a struct that is translated member by member."""
    layout = Layout(AggregateKind.STRUCT)
    for member, kind, _ in members:
        layout.place(member, kind)
    aggregate = Aggregate(AggregateKind.STRUCT, tag)
    aggregate.complete(tuple(layout.members), layout.size, layout.alignment)
    values = {
        member: tree.TranslatorMember(_NOWHERE, member, tree.Name(_NOWHERE, variable))
        for member, _, variable in members
    }
    nothing = program.Integer(INT, 0)
    translator = Translator(aggregate, aggregate, INT, "", values)
    operand = Operand(TRANSLATED, nothing, translation=Translation(translator, nothing, is_pointer=True))
    body = tree.IntegerLiteral(_NOWHERE, 0, "int", "0")
    return Inline(name, Pointer(aggregate), operand, None, (), body, weight=1)


INLINES: Final[Mapping[str, Inline]] = MappingProxyType(
    {
        "curpsinfo": _inline("curpsinfo", "psinfo", _PSINFO),
        "curlwpsinfo": _inline("curlwpsinfo", "lwpsinfo", _LWPSINFO),
        "curcpu": _inline("curcpu", "cpuinfo", _CPUINFO),
    }
)
