/* Attributes of something that never comes. */
#pragma D attributes Stable/Stable/Common nosuch

BEGIN
{
	exit(0);
}
