/* The built-in variables are read only. */
BEGIN
{
	timestamp = 0;
}
