/* What does not fit specsize is lost; it is told when the speculation ends. */
#pragma D option quiet
#pragma D option specsize=40
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("%d\n", 1); }
BEGIN { speculate(self->s); printf("%d\n", 2); }
BEGIN { speculate(self->s); printf("%d\n", 3); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
