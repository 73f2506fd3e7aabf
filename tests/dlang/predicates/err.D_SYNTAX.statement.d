/* It is no statement. */
BEGIN
/x = 1;/
{
	exit(0);
}
