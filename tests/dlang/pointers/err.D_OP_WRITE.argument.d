/* What a probe's arguments lead to is the guest's, and is not written. */
BEGIN
{
	*((int *)arg0 + 1) = 5;
}
