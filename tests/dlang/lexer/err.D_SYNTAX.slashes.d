// is no comment in D
BEGIN
{
	trace(1);
}
