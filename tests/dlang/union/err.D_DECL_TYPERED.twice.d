/* A tag is defined once. */
union u {
	int a;
};

union u {
	int a;
};

BEGIN
{
	exit(0);
}
