/* A thread's variables too. */
self int x;
self string x;

BEGIN
{
	exit(0);
}
