/* A clause's one. */
BEGIN
{
	trace(this->x);
}
