/* An image is the module `kernel`, or its file's name, in quotes or with _ for what D cannot write.
 * @image: kernel amd64
 * @options: -q
 */
BEGIN
{
	printf("%d %d %d %d %d\n", `ncpu, kernel`ncpu, `kernel`ncpu, kernel_amd64`ncpu, "kernel-amd64"`ncpu);
	printf("%d %d %d\n", sizeof(struct kernel`callout), sizeof("kernel-amd64"`struct callout),
	    sizeof(kernel_amd64`struct callout) == sizeof(struct callout));
	printf("%s%s\n", "a string ", "`not a module");
	exit(0);
}
