/* An array's elements are no associative arrays. */
int a[3][string];

BEGIN
{
	exit(0);
}
