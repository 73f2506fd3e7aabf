/* A struct that is assigned from a translation. */
#pragma D option quiet

struct in { int a; };
struct out { int twice; long wide; };
translator struct out < struct in *p > { twice = p->a * 2; wide = -p->a; };
struct out o;

BEGIN { this->p = (struct in *)alloca(4); this->p->a = 21; o = xlate <struct out>(this->p); printf("%d %d\n", o.twice, o.wide); exit(0); }
