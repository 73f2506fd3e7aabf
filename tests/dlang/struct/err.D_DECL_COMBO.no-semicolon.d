/* A struct's definition ends with a semicolon: another one after it is a second type. */
struct a {
	int x;
}

struct b {
	int y;
};

BEGIN
{
	exit(0);
}
