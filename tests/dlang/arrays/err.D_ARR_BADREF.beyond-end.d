/* Not beyond that, even if only the address is wanted. */
int a[5];

BEGIN
{
	trace((int64_t)&a[6]);
}
