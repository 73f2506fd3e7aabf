/* long twice at most. */
long long long x;

BEGIN
{
	exit(0);
}
