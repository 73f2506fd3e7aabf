/* And those of an aggregating function inside of another one. */
BEGIN
{
	@ = sum(count(1));
}
