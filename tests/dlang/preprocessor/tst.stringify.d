/* # and ##. */
/* @options: -C */
#pragma D option quiet
#define NAME(x) #x
#define JOIN(a, b) a ## b

BEGIN
{
	JOIN(var, iable) = NAME(hello);
	printf("%s\n", variable);
	exit(0);
}
