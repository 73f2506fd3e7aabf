/* A clause may commit its own speculation: what it left goes along, and not with the next that has its number. */
#pragma D option quiet
#pragma D option nspec=2

BEGIN { s = speculation(); }
BEGIN { speculate(s); printf("in %d\n", s); commit(s); }
BEGIN { speculate(s); printf("never\n"); commit(s); }
BEGIN { s = speculation(); t = speculation(); speculate(t); printf("other\n"); }
BEGIN { speculate(s); printf("again %d %d\n", s, t); commit(s); }
BEGIN { commit(t); }
BEGIN { exit(0); }
