/* Of structs and unions only. */
BEGIN
{
	trace(offsetof(int, a));
}
