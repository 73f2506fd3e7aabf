/* Nor an offset. */
struct bits {
	int a : 3;
	int b : 3;
};

BEGIN
{
	trace(offsetof(struct bits, b));
}
