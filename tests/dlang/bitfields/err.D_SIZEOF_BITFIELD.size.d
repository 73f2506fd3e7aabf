/* Nor a size in bytes. */
struct bits {
	int a : 3;
	int b : 3;
};

struct bits v;

BEGIN
{
	trace(sizeof (v.a));
}
