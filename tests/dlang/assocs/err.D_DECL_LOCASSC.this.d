/* A clause has no associative arrays. */
this int a[int];

BEGIN
{
	exit(0);
}
