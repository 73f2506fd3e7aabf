/* Of an associative one neither. */
void x[int];

BEGIN
{
	exit(0);
}
