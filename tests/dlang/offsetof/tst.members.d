/* Where members lie, padding counted. */
#pragma D option quiet

struct s {
	char a;
	short b;
	char c;
	int d;
	char e;
	long f;
	char g[3];
	char *h;
};

typedef struct s s_t;

BEGIN
{
	printf("%d %d %d %d\n", offsetof(struct s, a), offsetof(struct s, b), offsetof(struct s, c),
	    offsetof(struct s, d));
	printf("%d %d %d %d\n", offsetof(s_t, e), offsetof(s_t, f), offsetof(s_t, g), offsetof(s_t, h));
	printf("%d\n", sizeof (s_t));
	exit(0);
}
