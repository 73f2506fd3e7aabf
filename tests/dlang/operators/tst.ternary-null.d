/* The constant 0 goes with any pointer, and with a string. */
#pragma D option quiet

BEGIN
{
	x = 1;
	printf("[%s] %d\n", x ? "yes" : 0, (x ? NULL : "no") == "");
	p = x ? (int *)8 : 0;
	printf("%p\n", p);
	exit(0);
}
