/*
 * A member that the kernel's struct does not have.
 * @image: kernel
 */
BEGIN
{
	trace(`interfaces[0].if_nosuch);
}
