/* void stands alone. */
typedef int (*f_t)(int, void);

BEGIN
{
	exit(0);
}
