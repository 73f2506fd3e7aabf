/*
 * An element of a kernel's array is not written either: no pointer leads to it.
 * @image: kernel
 */
BEGIN
{
	`nfs_filter[0].code = 5;
}
