/* And here behind it, though it stands between two clauses. */
BEGIN
{
	x = 1;
}
#pragma D option defaultargs
#pragma D option quiet

BEGIN
{
	printf("%d<%s>\n", $1 + x, $$2);
	exit(0);
}
