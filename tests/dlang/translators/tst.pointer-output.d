/* A translation through a pointer, member by member. */
#pragma D option quiet

struct in { int a; int b; };
struct out { int sum; string text; };
translator struct out < struct in *p > { sum = p->a + p->b; text = p->a > 1 ? "more" : "few"; };

BEGIN { this->p = (struct in *)alloca(8); this->p->a = 2; this->p->b = 40; printf("%d %s\n", xlate <struct out *>(this->p)->sum, xlate <struct out *>(this->p)->text); exit(0); }
