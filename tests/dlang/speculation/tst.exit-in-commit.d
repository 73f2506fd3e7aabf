/* What was committed before exit() is printed before END. */
#pragma D option quiet
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("speculated\n"); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
END { printf("end\n"); }
