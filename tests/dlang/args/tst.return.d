/*
 * A return probe has the offset and the returned value; what entry remembered is still known.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::vfs_lookup:entry
{
	self->path = stringof(args[0]);
	self->result = args[1];
}

fbt::vfs_lookup:return
/self->path != NULL/
{
	printf("%s: %d%s\n", self->path, args[1], args[1] == 0 ? strjoin(" ", stringof((*self->result)->v_name)) : "");
	self->path = 0;
	n++;
}

fbt::vfs_lookup:return
/n == 6/
{
	exit(0);
}
