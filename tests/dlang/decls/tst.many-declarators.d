/* Several names in a declaration, pointers and arrays among them. */
#pragma D option quiet

int a, *p, b[3];
self int x, y;

BEGIN { a = 1; p = (int *)alloca(4); *p = 2; b[2] = 3; self->y = 4; printf("%d %d %d %d %d %d\n", a, *p, b[2], self->x, self->y, sizeof (b)); exit(0); }
