/* Another struct is no such key, even of the same members. */
struct a {
	int x;
};
struct b {
	int x;
};
struct a v;
struct b w;

BEGIN
{
	seen[v] = 1;
	seen[w] = 1;
}
