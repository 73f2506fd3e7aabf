/* Actions are done in the order of the text. */
#pragma D option quiet

BEGIN
{
	printf("a");
	trace("b");
	printf("c");
	trace(1);
	printf("\n");
	exit(0);
}
