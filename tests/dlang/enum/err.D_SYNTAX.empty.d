/* An enumeration has enumerators. */
enum e { };

BEGIN
{
	exit(0);
}
