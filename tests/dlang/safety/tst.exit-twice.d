/* The last exit() of a clause counts; nothing runs after it but END. */
/* @status: 2 */
#pragma D option quiet

BEGIN
{
	exit(1);
	exit(2);
}

BEGIN
{
	printf("never\n");
}

END
{
	printf("end\n");
}
