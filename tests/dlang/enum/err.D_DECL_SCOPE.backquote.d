/* An enumerator belongs to the program. */
enum e { kernel`A };

BEGIN
{
	exit(0);
}
