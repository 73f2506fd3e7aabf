/* Whatever that is. */
struct bits {
	char a : 9;
};

BEGIN
{
	exit(0);
}
