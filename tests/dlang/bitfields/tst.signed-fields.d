/* A signed bit-field keeps its sign; others are cut. */
#pragma D option quiet

struct b { int s : 3; unsigned int u : 3; int rest : 26; } v;

BEGIN { v.s = -2; v.u = 9; v.rest = 100; printf("%d %d %d %d\n", v.s, v.u, v.rest, sizeof (struct b)); exit(0); }
