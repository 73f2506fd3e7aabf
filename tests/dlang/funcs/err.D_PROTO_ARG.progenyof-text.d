/* A process is a number. */
BEGIN
{
	progenyof("a");
	exit(0);
}
