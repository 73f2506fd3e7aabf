/* Nothing is cast to a struct. */
struct s {
	int a;
};

BEGIN
{
	x = 1;
	y = (struct s)x;
}
