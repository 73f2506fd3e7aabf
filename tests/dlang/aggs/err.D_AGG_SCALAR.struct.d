/* A struct is no number. */
struct s { int i; }; struct s x; BEGIN { x.i = 1; @a = max(x); }
