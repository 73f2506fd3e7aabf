/* A text's number: blanks and a sign first, it ends where the digits do. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", strtoll("123"));
	printf("%d\n", strtoll("123abc"));
	printf("%d\n", strtoll("-42"));
	printf("%d\n", strtoll("+42"));
	printf("%d\n", strtoll("  7 8"));
	printf("%d\n", strtoll("\t 8"));
	printf("%d\n", strtoll("\n8"));
	printf("%d\n", strtoll("abc"));
	printf("%d\n", strtoll(""));
	printf("%d\n", strtoll("-"));
	printf("%d\n", strtoll("--5"));
	printf("%d\n", strtoll("9223372036854775807"));
	printf("%d\n", strtoll("-9223372036854775808"));
	printf("%d\n", strtoll("0x10"));
	printf("%d\n", strtoll("010"));
	exit(0);
}
