/* Division by a variable that is zero is a fault of that clause; what it recorded is gone, the program goes on. */
#pragma D option quiet

BEGIN
{
	zero = 0;
	printf("never seen\n");
	printf("%d\n", 1 / zero);
}

BEGIN
{
	printf("%d\n", zero);
}

BEGIN
{
	printf("%d\n", 1 % zero);
}

ERROR
{
	printf("fault %d, value %d\n", arg4, arg5);
}

BEGIN
{
	exit(0);
}
