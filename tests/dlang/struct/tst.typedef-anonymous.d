/* A struct without a tag has the name of its typedef. */
#pragma D option quiet

typedef struct { int a; struct { int b; } in; } both_t;
both_t v;

BEGIN { v.a = 1; v.in.b = 2; printf("%d %d %d\n", v.a, v.in.b, sizeof (both_t)); exit(0); }
