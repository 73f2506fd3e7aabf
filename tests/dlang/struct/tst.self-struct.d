/* A thread has structs of its own, as has an array. */
#pragma D option quiet

struct s { int a; int b; };
self struct s t;
struct s m[string];

BEGIN { self->t.b = 4; m["x"].a = 6; m["y"].a = 7; printf("%d %d %d %d\n", self->t.a, self->t.b, m["x"].a, m["y"].a + m["z"].a); exit(0); }
