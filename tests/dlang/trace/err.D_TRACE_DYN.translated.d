/* A translation has no bytes: only its members have. */
struct in { int a; }; struct out { int b; }; translator struct out < struct in *i > { b = i->a; }; BEGIN { trace(xlate <struct out *> ((struct in *)alloca(4))); }
