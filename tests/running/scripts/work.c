/* Something for a compiler: loops to vectorise, a switch, bit fields, floats, recursion, inline assembly. */
#define N 512
typedef unsigned long u64;
struct packed { unsigned a : 3, b : 7, c : 22; short d; double e[4]; } __attribute__((packed));
static u64 state = 88172645463325252ul;
static u64 next(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
float dot(const float *a, const float *b, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
void convolve(int *out, const short *in, int n) { for (int i = 2; i < n - 2; i++) out[i] = (in[i - 2] + 4 * in[i - 1] + 6 * in[i] + 4 * in[i + 1] + in[i + 2]) >> 4; }
int which(int n) { switch (n % 11) { case 0: return n; case 1: return -n; case 2: return n << 3; case 5: return n ^ 77; case 7: return n / 3; case 9: return n % 5; default: return 0; } }
int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
double horner(const double *c, double x) { double y = 0; for (int i = 7; i >= 0; i--) y = y * x + c[i]; return y; }
int fields(struct packed *p) { p->a += 3; p->b ^= p->c; p->d = (short)(p->e[1] * 2); return p->a + p->b; }
u64 sum(const unsigned char *s) { u64 h = 5381; while (*s) h = h * 33 + *s++; return h + next(); }
void sort(int *v, int n) { if (n < 2) return; int p = v[n / 2], i = 0, j = n - 1; while (i <= j) { while (v[i] < p) i++; while (v[j] > p) j--; if (i <= j) { int t = v[i]; v[i++] = v[j]; v[j--] = t; } } sort(v, j + 1); sort(v + i, n - i); }
