/* Quotes around an argument make it text. */
/* @arguments: '"5"' */
#pragma D option quiet

BEGIN
{
	printf("%s\n", $1);
	exit(0);
}
