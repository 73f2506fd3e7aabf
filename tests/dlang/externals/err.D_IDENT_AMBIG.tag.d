/*
 * Right of an enumeration a word is its tag, or the program's variable: not both.
 * @image: kernel
 */
BEGIN
{
	VREG = 1;
}

fbt::vfs_create:entry
/args[2] == VREG/
{
	exit(0);
}
