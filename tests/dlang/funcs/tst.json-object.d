/* A value that is an object or an array comes as it stands. */
#pragma D option quiet

BEGIN
{
	printf("%s\n", json("{\"a\": {\"b\": 1}}", "a"));
	printf("%s\n", json("{\"a\": [1, 2]}", "a"));
	exit(0);
}
