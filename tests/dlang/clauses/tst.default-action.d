/* An empty clause records that its probe fired, and so does one that records; one that does neither prints nothing. */

BEGIN
{
}

BEGIN
{
	x = 1;
}

BEGIN
{
	exit(0);
}
