/* Pointers to functions have types. */
#pragma D option quiet

typedef int (*handler_t)(int, char *);
typedef void (*nothing_t)(void);

BEGIN
{
	h = (handler_t)0x1000;
	printf("%p %d %d\n", h, sizeof (handler_t), sizeof (nothing_t));
	exit(0);
}
