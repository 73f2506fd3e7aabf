/* A declaration may be repeated if it says the same. */
#pragma D option quiet

int x;
int x;
self string s;
self string s;

BEGIN { x = 1; self->s = "a"; printf("%d %s\n", x, self->s); exit(0); }
