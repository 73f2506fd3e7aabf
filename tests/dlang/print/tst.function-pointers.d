/* As in libctf, the names of types of functions have no parameters. */
#pragma D option quiet

struct s {
	int (*g)(int, char *);
	void (*h)(void);
	int (*k)();
	char *(*m[2])(long, ...);
} v;

BEGIN
{
	print(v);
	printf("\n");
	exit(0);
}
