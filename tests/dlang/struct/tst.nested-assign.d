/* A struct is copied as a whole; its copy is one of its own. */
#pragma D option quiet

struct in { int a; int b; };
struct out { struct in i; int c; } x;
struct in y;

BEGIN { x.i.a = 1; x.i.b = 2; x.c = 3; y = x.i; x.i.a = 9; printf("%d %d %d\n", y.a, y.b, x.i.a); exit(0); }
