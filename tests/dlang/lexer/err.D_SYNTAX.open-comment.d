BEGIN
{
	trace(1);
}
/* This one has no end.
