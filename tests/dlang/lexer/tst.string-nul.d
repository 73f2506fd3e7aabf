/* A NUL in a string ends it as a value. */
#pragma D option quiet

BEGIN
{
	printf("[%s] %d\n", "ab\0cd", strlen("ab\0cd"));
	exit(0);
}
