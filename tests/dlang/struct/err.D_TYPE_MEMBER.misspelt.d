/* A member that is none; the nearest is named.  @says: count */
struct s { int count; } v;
BEGIN { trace(v.cuont); }
