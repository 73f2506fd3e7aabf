/* $$1 is always text. */
/* @arguments: 5 name "two words" "" */
#pragma D option quiet

BEGIN
{
	printf("[%s] [%s] [%s] [%s]\n", $$1, $$2, $$3, $$4);
	exit(0);
}
