/* Nor does a condition choose between two. */

BEGIN
{
	timestamp ? exit(0) : exit(1);
}
