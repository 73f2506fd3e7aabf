/* print() shows types by their names. */
#pragma D option quiet

struct s { int a; char c; unsigned long u; };
enum e { ONE = 1, TWO };
struct s v;

BEGIN { v.a = -1; v.c = 'x'; v.u = 255; print(v); printf("\n"); print((enum e)2); print(17); print("text"); exit(0); }
