/* A family is a number. */
BEGIN
{
	inet_ntop("inet", alloca(4));
	exit(0);
}
