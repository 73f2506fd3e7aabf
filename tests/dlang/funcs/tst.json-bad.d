/* Text that is no JSON has no values. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", json("", "a") == NULL);
	printf("%d\n", json("nonsense", "a") == NULL);
	printf("%d\n", json("{", "a") == NULL);
	printf("%d\n", json("{\"a\"", "a") == NULL);
	printf("%d\n", json("{\"a\":}", "a") == NULL);
	printf("%d\n", json("[1", "a") == NULL);
	exit(0);
}
