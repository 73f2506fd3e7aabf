/* Nobody translates an int into this. */
struct out {
	int a;
};

BEGIN
{
	x = 1;
	trace(xlate <struct out>(x).a);
}
