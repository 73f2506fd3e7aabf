/* Translations are structs or unions. */
struct in {
	int x;
};

translator int < struct in *p > {
	a = p->x;
};

BEGIN
{
	exit(0);
}
