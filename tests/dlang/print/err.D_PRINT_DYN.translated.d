/* A translation has no bytes: only its members have. */
struct in { int a; }; struct out { int b; }; translator struct out < struct in *i > { b = i->a; }; BEGIN { print(xlate <struct out *> ((struct in *)alloca(4))); }
