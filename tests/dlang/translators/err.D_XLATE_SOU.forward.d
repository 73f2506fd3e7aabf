/* An output that is only declared has no members to translate into. */
translator struct nowhere < int i > {
};

BEGIN
{
	exit(0);
}
