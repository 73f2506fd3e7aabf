/* No such provider. */
nosuch:::
{
	exit(0);
}
