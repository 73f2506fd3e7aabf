/* Nobody is watched. */
BEGIN
{
	trace($target);
}
