/* Not even the elements of an array. */
void x[10];

BEGIN
{
	exit(0);
}
