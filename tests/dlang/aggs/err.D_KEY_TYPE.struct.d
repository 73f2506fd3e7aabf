/* A struct is no key. */
struct s { int i; }; struct s x; BEGIN { x.i = 1; @a[x] = count(); }
