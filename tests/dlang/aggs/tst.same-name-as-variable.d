/* Aggregations have a name space of their own. */
#pragma D option quiet
BEGIN { x = 5; @x = sum(x); self->x = 1; @x = sum(self->x); exit(0); }
