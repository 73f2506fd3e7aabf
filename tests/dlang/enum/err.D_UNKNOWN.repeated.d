/* Not in one enumeration either. */
enum e { A, A };

BEGIN
{
	exit(0);
}
