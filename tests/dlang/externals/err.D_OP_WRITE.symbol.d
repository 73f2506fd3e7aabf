/*
 * The kernel's variables are read only.
 * @image: kernel
 */
BEGIN
{
	`calls = 5;
}
