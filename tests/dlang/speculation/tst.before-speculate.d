/* What is before speculate() and records nothing is done in any case. */
#pragma D option quiet
BEGIN { self->s = speculation(); }
BEGIN { x = 5; speculate(self->s); y = 6; printf("%d\n", x); }
BEGIN { discard(self->s); }
BEGIN { printf("%d %d\n", x, y); exit(0); }
