/* Nor are there variables of it. */
struct opaque;
struct opaque v;

BEGIN
{
	exit(0);
}
