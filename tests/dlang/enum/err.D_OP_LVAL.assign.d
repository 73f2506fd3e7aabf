/* Constants are not assigned to. */
enum e { A };

BEGIN
{
	A = 5;
}
