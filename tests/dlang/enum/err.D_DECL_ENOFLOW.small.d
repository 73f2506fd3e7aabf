/* And there is a smallest. */
enum e { A = -2147483649 };

BEGIN
{
	exit(0);
}
