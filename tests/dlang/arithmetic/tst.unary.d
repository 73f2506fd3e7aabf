/* + - ! ~ and chains of them. */
#pragma D option quiet

BEGIN
{
	x = 5;
	printf("%d %d %d %d\n", +x, -x, !x, ~x);
	printf("%d %d %d %d\n", - -x, !!x, ~~x, -~x);
	printf("%d %d\n", !0, -!0);
	printf("%d\n", - - - - - -3);
	exit(0);
}
