/* A clause that fails leaves nothing in the speculation. */
#pragma D option quiet
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("lost %d\n", *(int *)0); }
BEGIN { speculate(self->s); printf("kept\n"); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
