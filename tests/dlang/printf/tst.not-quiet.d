/* Without -q the text follows the columns, and a newline follows the clause. */

BEGIN
{
	printf("one");
	printf(" two");
	exit(0);
}
