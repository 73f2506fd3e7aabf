/* A type that nobody declared. */
BEGIN
{
	trace(sizeof (nomodule`struct nowhere));
}
