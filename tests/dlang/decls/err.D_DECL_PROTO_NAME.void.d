/* And without a name. */
typedef int (*f_t)(void x);

BEGIN
{
	exit(0);
}
