/* A member that is none. */
union u {
	int a;
};

union u v;

BEGIN
{
	v.b = 1;
}
