/* No type is an associative array. */
typedef int t[string];

BEGIN
{
	exit(0);
}
