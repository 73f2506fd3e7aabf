/* Different structs are not assigned. */
struct s {
	int a;
};

struct t {
	int a;
};

struct s x;
struct t y;

BEGIN
{
	x = y;
}
