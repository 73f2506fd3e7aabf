/* A name is not another type's. */
typedef int t;
typedef char t;

BEGIN
{
	exit(0);
}
