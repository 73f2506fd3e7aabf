/* A word that is a type may be one. */
/* @arguments: int */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", sizeof ($1), ($1)0x100000005);
	exit(0);
}
