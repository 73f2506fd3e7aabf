/* ERROR fires in the thread of the clause: its self-> is the same. */
#pragma D option quiet
BEGIN { self->x = 5; trace(*(int *)0); }
ERROR { printf("%d\n", self->x); exit(0); }
