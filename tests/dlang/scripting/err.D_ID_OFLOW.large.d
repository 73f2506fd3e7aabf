/* A probe's id has 32 bits. */
4294967296
{
	exit(0);
}
