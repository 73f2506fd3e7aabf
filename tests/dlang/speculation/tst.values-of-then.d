/* Values are those of the time of speculate(). */
#pragma D option quiet
BEGIN { self->s = speculation(); x = 1; }
BEGIN { speculate(self->s); printf("%d\n", x); x = 2; }
BEGIN { x = 3; }
BEGIN { commit(self->s); }
BEGIN { printf("%d\n", x); exit(0); }
