/* An empty clause records that its probe fired, semicolons are nothing. */
/* @options: -q */

BEGIN
{
}

BEGIN
{
	;;;
}

BEGIN
{
	exit(0)
}
