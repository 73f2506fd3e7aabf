/*
 * A translator of the kernel's struct, and a typedef of the kernel in a declaration.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

typedef struct myinfo {
	string name;
	uint64_t size;
	int is_directory;
} myinfo_t;

translator myinfo_t < struct vnode *v > {
	name = stringof(v->v_name);
	size = v->v_attr.va_size;
	is_directory = v->v_attr.va_type == VDIR;
};

u32 n;
struct vnode *last;

fbt::file_read:entry
/n < 2/
{
	n++;
	last = args[0];
	printf("%s %d %d, at %d\n", xlate <myinfo_t>(args[0]).name, xlate <myinfo_t *>(last)->size,
	    xlate <myinfo_t>(last).is_directory, args[1]);
}

fbt::file_read:entry
/n == 2/
{
	exit(0);
}
