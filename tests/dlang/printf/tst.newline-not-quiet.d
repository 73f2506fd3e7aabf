/* The newline of the text is one more. */

BEGIN
{
	printf("one\n");
	exit(0);
}
