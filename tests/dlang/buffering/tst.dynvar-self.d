/* @options: -x dynvarsize=256

   Thread-local variables are dynamic ones: what finds no room reads 0, and is told. */
#pragma D option quiet

BEGIN { self->a = 1; self->b = 2; self->c = 3; self->d = 4; self->e = 5; }
BEGIN { printf("%d %d\n", self->a, self->e); exit(0); }
