/* What is neither committed nor discarded does not appear. */
#pragma D option quiet
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("never\n"); }
BEGIN { printf("end\n"); exit(0); }
