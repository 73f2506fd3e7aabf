/* A clause may discard its own speculation: nothing is left for the next that has its number. */
#pragma D option quiet

BEGIN { s = speculation(); speculate(s); printf("never\n"); discard(s); }
BEGIN { s = speculation(); speculate(s); discard(s); printf("never\n"); }
BEGIN { s = speculation(); speculate(s); printf("kept\n"); }
BEGIN { commit(s); }
BEGIN { exit(0); }
