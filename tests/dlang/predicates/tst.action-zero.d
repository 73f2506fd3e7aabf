/* A fault in a predicate is reported as action 0 and its clause does nothing. */
#pragma D option quiet

int zero;

BEGIN
/1 / zero/
{
	printf("never\n");
}

ERROR
{
	printf("action %d, fault %d\n", arg2, arg4);
	exit(0);
}
