/* Nor is what an int * leads to. */
BEGIN
{
	trace(rw_write_held((int *)0x1000));
}
