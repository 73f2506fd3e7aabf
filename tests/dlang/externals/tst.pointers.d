/*
 * Pointers of the kernel lead anywhere in it: lists, tables of functions, addresses of symbols.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::work_init:entry
{
	this->root = `nodes[0];
	this->etc = (struct vnode *)((char *)this->root->v_children.next - offsetof(struct vnode, v_link));
	this->hosts = (struct vnode *)((char *)this->etc->v_children.next - offsetof(struct vnode, v_link));
	this->home = (struct vnode *)this->etc->v_link.next;
	printf("[%s] %s %s %s\n", this->root->v_name, this->etc->v_name, this->hosts->v_name, stringof(this->home->v_name));
	printf("%d %d %d\n", this->hosts == `nodes[3], this->home == `nodes[2], this->etc->v_children.prev == &`nodes[5]->v_link);
	printf("%d %d\n", this->hosts->v_attr.va_size, this->hosts->v_attr.va_type == VREG);
	printf("%c %c\n", this->hosts->v_data[0], this->hosts->v_data[3]);
	printf("%d %d\n", this->root->v_ops == &`dir_ops, this->hosts->v_ops == &`file_ops);
	printf("%d\n", (uintptr_t)this->hosts->v_ops->vop_read == (uintptr_t)&`file_read);
	printf("%d %d\n", &`nodes[1] - &`nodes[0], (uintptr_t)&`nodes[1] - (uintptr_t)&`nodes);
	exit(0);
}
