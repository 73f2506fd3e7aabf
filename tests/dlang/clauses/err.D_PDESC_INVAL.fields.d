/* Four fields are enough. */
a:b:c:d:e
{
	exit(0);
}
