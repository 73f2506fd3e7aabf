/* An argument and results become others: where a function returns itself, and where a tail call does it. */
/* @image: kernel arm64 */
/* @options: -q -w --console /dev/null */
fbt::fibonacci:entry /!n++/ { regs[R_X0] = 3; }
fbt::fibonacci:entry { depth++; }
fbt::fibonacci:return { depth--; }
fbt::fibonacci:return /!depth && !done++/ { printf("%d after %d calls\n", arg1, n); regs[R_X0] = 1000; }
fbt::total:entry /done && !told++/ { printf("%d\n", arg0); }
fbt::rpc_read:return { regs[R_X0] = 77; reads++; }
fbt::rpc_dispatch:return /arg1 == 77/ { failed++; }
END { printf("%d %d\n", reads, failed); }
