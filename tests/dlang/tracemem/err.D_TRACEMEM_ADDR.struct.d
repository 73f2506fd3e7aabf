/* A struct is no address. */
struct s { int i; }; struct s x; BEGIN { x.i = 1; tracemem(x, 4); }
