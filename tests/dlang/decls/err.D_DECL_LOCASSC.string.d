/* this-> has no associative arrays. */
this string names[int, string];

BEGIN
{
	exit(0);
}
