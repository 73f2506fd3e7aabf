/* What is committed depends on what happened later. */
#pragma D option quiet

BEGIN { s = speculation(); speculate(s); printf("started\n"); }
BEGIN { bad = 1; }
BEGIN /bad/ { commit(s); }
BEGIN /!bad/ { discard(s); }
BEGIN { exit(0); }
