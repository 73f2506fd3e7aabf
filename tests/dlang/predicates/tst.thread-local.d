/* Of thread-local variables. */
#pragma D option quiet
BEGIN { self->a = 1; }
BEGIN /self->a/ { printf("set\n"); self->a = 0; }
BEGIN /self->a/ { printf("never\n"); }
BEGIN { exit(0); }
