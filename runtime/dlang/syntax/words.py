"""The words of D: which are reserved, and which names D defines itself."""

from typing import Final

ATTRIBUTES: Final = frozenset(("signed", "unsigned", "short", "long"))
BASIC_TYPES: Final = ATTRIBUTES | {"void", "char", "int", "float", "double"}
QUALIFIERS: Final = frozenset(("const", "restrict", "volatile"))
STORAGE: Final = frozenset(("auto", "register", "static", "extern", "typedef"))
VARIABLE_STORAGE: Final = STORAGE | {"self", "this"}
AGGREGATES: Final = frozenset(("struct", "union", "enum"))
TYPE_WORDS: Final = BASIC_TYPES | QUALIFIERS | AGGREGATES | {"string"}

# These start a declaration outside clauses. Inside, the others are reserved as well.
DECLARATION_WORDS: Final = TYPE_WORDS | VARIABLE_STORAGE | {"counter", "import", "inline", "provider", "translator"}
_OTHER_KEYWORDS: Final = """
    break case continue default do else for goto if offsetof probe return sizeof stringof switch while xlate
"""
KEYWORDS: Final = DECLARATION_WORDS.union(_OTHER_KEYWORDS.split())

# The functions. Each action and aggregating function has its prototype in `check.signatures`, each subroutine in
# `check.functions`; printt and typeref have none, since FreeBSD took them out again.
AGGREGATING: Final = frozenset(
    {"avg", "count", "llquantize", "lquantize", "max", "min", "quantize", "stddev", "sum"}
)  # fmt: skip
STACKS: Final = frozenset({"jstack", "stack", "ustack"})
SYMBOLS: Final = frozenset({"func", "mod", "sym", "uaddr", "ufunc", "umod", "usym"})
ACTIONS: Final = frozenset(
    {
        "breakpoint", "chill", "clear", "commit", "denormalize", "discard", "exit", "freopen", "ftruncate", "normalize",
        "override", "panic", "print", "printa", "printf", "printm", "printt", "raise", "setopt", "skip", "snapshot",
        "speculate", "stop", "system", "trace", "tracemem", "trunc",
    }
    | STACKS
    | SYMBOLS
)  # fmt: skip
SUBROUTINES: Final = frozenset(
    {
        "alloca", "basename", "bcopy", "cleanpath", "copyin", "copyinstr", "copyinto", "copyout", "copyoutstr",
        "ddi_pathname", "dirname", "getf", "getmajor", "getminor", "htonl", "htonll", "htons", "index", "inet_ntoa",
        "inet_ntoa6", "inet_ntop", "json", "lltostr", "memref", "memstr", "msgdsize", "msgsize", "mutex_owned",
        "mutex_owner", "mutex_type_adaptive", "mutex_type_spin", "ntohl", "ntohll", "ntohs", "progenyof", "rand",
        "rindex", "rw_iswriter", "rw_read_held", "rw_write_held", "speculation", "strchr", "strjoin", "strlen",
        "strrchr", "strstr", "strtok", "strtoll", "substr", "sx_exclusive_held", "sx_isexclusive", "sx_shared_held",
        "tolower", "toupper", "typeref",
    }
)  # fmt: skip

# The built-in variables (`builtins` has their types) and what the libraries of DTrace define.
_VARIABLES: Final = """
    arg0 arg1 arg2 arg3 arg4 arg5 arg6 arg7 arg8 arg9 args caller cpu curcpu curlwpsinfo curpsinfo curthread cwd epid
    errno execargs execname fds gid id ipl jailname jid pid ppid probefunc probemod probename probeprov regs root
    stackdepth tid timestamp $target ucaller uid uregs ustackdepth vtimestamp walltimestamp zonename
"""

# D's own names take precedence over types of the traced image with the same name.
GLOBALS: Final = frozenset(_VARIABLES.split()) | AGGREGATING | ACTIONS | SUBROUTINES
