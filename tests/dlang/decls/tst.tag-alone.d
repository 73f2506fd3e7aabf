/* But a tag alone declares the tag. */
#pragma D option quiet

struct s;
union u;
enum e { ONE = 1 };
struct { int a; };

BEGIN
{
	printf("%d\n", ONE);
	exit(0);
}
