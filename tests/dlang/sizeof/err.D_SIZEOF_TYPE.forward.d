/* Nor has a struct that is only declared. */
struct opaque;

BEGIN
{
	trace(sizeof (struct opaque));
}
