/* discard() may share a clause with what records. */
#pragma D option quiet
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("never\n"); }
BEGIN { printf("discarded\n"); discard(self->s); printf("really\n"); exit(0); }
