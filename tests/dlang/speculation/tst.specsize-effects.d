/* A record that does not fit ends its clause; what was speculated before stays. */
#pragma D option quiet
#pragma D option specsize=64
BEGIN { s = speculation(); }
BEGIN { speculate(s); printf("%d ", 1); }
BEGIN { speculate(s); printf("%d ", 2); }
BEGIN { speculate(s); printf("%d ", 3); x++; }
BEGIN { commit(s); }
BEGIN { printf("x %d\n", x); exit(0); }
