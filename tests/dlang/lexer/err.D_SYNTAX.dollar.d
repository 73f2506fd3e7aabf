/* A dollar sign alone. */
BEGIN
{
	trace($);
}
