/* Nor is a struct. */
struct s { int i; }; struct s x; BEGIN /x/ { x.i = 1; }
