/* && and || do not look at the right side if the left one decides; ^^ always does. */
#pragma D option quiet

BEGIN
{
	zero = 0;
	n = 0;
	x = zero && n++;
	x = 1 || n++;
	printf("%d\n", n);
	x = 1 && n++;
	x = zero || n++;
	x = 1 ^^ n++;
	printf("%d\n", n);
	printf("%d %d\n", zero && 1 / zero, 1 || 1 / zero);
	exit(0);
}
