/* An enumerator is not defined twice. */
enum e { A, B };
enum f { B, C };

BEGIN
{
	exit(0);
}
