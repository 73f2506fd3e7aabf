/* Branches without braces. */
#pragma D option quiet

BEGIN
{
	n = 0;
	if (n)
		printf("yes\n");
	else
		printf("no\n");
	if (!n)
		n = 1;
	if (n) printf("now\n"); else printf("never\n");
	exit(0);
}
