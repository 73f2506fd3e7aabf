/*
 * Inlines give names to what an argument leads to.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

inline string node_name[struct vnode *v] = v == NULL ? "<none>" : stringof(v->v_name);
inline int is_home[struct vnode *v] = v != NULL && node_name[v] == "home";

fbt::vfs_create:entry
/is_home[args[0]]/
{
	printf("%s in %s, %s\n", stringof(args[1]), node_name[args[0]], node_name[0]);
	exit(0);
}
