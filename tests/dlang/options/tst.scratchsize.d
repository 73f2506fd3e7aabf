/* scratchsize is what a clause may allocate, to the byte; the next clause has all of it again. */
#pragma D option quiet
#pragma D option scratchsize=64
BEGIN { p = (char *)alloca(64); p[63] = 'x'; printf("%c", p[63]); }
BEGIN { n = 65; alloca(n); printf("never"); }
BEGIN { p = (char *)alloca(32); q = (char *)alloca(32); q[31] = 'y'; printf("%c", q[31]); }
BEGIN { alloca(32); alloca(33); printf("never"); }
BEGIN { copyin(0, 65); printf("never"); }
ERROR { printf("%s", arg4 == DTRACEFLT_NOSCRATCH ? "!" : "?"); }
BEGIN { printf("\n"); exit(0); }
