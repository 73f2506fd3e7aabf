/* Descriptions that say the same twice make two enablings. */
#pragma D option quiet

BEGIN, dtrace:::BEGIN, :::BEGIN
{
	n++;
}

BEGIN
{
	printf("%d\n", n);
	exit(0);
}
