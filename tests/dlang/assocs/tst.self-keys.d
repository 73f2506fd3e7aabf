/* A thread's array has elements of its own. */
#pragma D option quiet

BEGIN { self->a["k"] = 1; b["k"] = 2; printf("%d %d\n", self->a["k"], b["k"]); exit(0); }
