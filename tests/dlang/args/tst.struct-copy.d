/*
 * A struct of the kernel is copied into a variable of the program: later changes do not reach it.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

struct vattr before;
int n;

fbt::file_write:entry
/n == 0/
{
	before = args[0]->v_attr;
	self->node = args[0];
	printf("%d %d %o\n", before.va_size, before.va_fileid, before.va_mode);
}

fbt::file_write:return
/self->node/
{
	printf("%d %d\n", before.va_size, self->node->v_attr.va_size);
	n++;
	exit(0);
}
