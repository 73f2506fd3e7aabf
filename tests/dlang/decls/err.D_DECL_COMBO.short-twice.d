/* And short. */
short short x;

BEGIN
{
	exit(0);
}
