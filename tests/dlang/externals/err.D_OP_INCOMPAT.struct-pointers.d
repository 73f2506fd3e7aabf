/*
 * Pointers to different structs of the kernel are not compared.
 * @image: kernel
 */
BEGIN
{
	trace((struct vnode *)0 == (struct ifnet *)0);
}
