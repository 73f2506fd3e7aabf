/* A struct that is only declared has nothing to be a key. */
struct k;

BEGIN
{
	seen[*(struct k *)alloca(8)] = 1;
}
