/* Logic takes scalars, and a comparison of strings is one. */
#pragma D option quiet

BEGIN
/ execname == execname && probename == "BEGIN" /
{
	printf("%d\n", !(probename == "END"));
	exit(0);
}
