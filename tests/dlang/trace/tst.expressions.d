/* trace() of expressions of all kinds, quiet. */
#pragma D option quiet

struct s { int a; } v;
BEGIN { v.a = 3; trace(v.a + 1); trace(" "); trace("x" == "x"); trace(" "); trace(v.a > 2 ? "yes" : "no"); trace(" "); trace(sizeof (v)); exit(0); }
