/*
 * Outside of clauses there are no arguments.
 * @image: kernel
 */
inline int first = args[0];

BEGIN
{
	exit(0);
}
