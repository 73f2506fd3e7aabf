"""The words of D: which are reserved, and which names D has before a program declares any."""

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

# D's own names take precedence over types of the traced image with the same name.
_GLOBALS: Final = """
    arg0 arg1 arg2 arg3 arg4 arg5 arg6 arg7 arg8 arg9 args caller cpu curcpu curlwpsinfo curpsinfo curthread cwd epid
    errno execargs execname fds gid id ipl jailname jid pid ppid probefunc probemod probename probeprov regs root
    stackdepth tid timestamp ucaller uid uregs ustackdepth vtimestamp walltimestamp zonename
    alloca avg basename bcopy breakpoint chill cleanpath clear commit copyin copyinstr copyinto copyout copyoutstr count
    ddi_pathname denormalize dirname discard exit freopen ftruncate func getf getmajor getminor htonl htonll htons index
    inet_ntoa inet_ntoa6 inet_ntop json jstack llquantize lltostr lquantize max memref memstr min mod msgdsize msgsize
    mutex_owned mutex_owner mutex_type_adaptive mutex_type_spin normalize ntohl ntohll ntohs panic print printa printf
    printm progenyof quantize raise rand rindex rw_iswriter rw_read_held rw_write_held setopt speculate speculation
    stack stddev stop strchr strjoin strlen strrchr strstr strtok strtoll substr sum sx_exclusive_held sx_isexclusive
    sx_shared_held sym system tolower toupper trace tracemem trunc typeref uaddr ufunc umod ustack usym
"""
GLOBALS: Final = frozenset(_GLOBALS.split())
