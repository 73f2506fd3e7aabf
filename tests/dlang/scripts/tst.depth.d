/* The depth of a recursion, kept in a variable of the thread. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

int deepest;

fbt::vfs_walk:entry
{
	self->depth++;
	deepest = self->depth > deepest ? self->depth : deepest;
}

fbt::vfs_walk:return
{
	self->depth--;
}

END
{
	printf("%s\n", deepest > 0 ? "deep" : "flat");
}

fbt::heap_report:entry
{
	printf("%d left\n", self->depth);
}
