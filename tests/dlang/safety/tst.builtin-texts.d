/* And those that are text. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt:::,
profile-4999,
BEGIN,
END,
ERROR
{
	myexecname = execname;
	myprobefunc = probefunc;
	myprobemod = probemod;
	myprobename = probename;
	myprobeprov = probeprov;
	myzonename = zonename;
	myjailname = jailname;
	myexecargs = execargs;
	mycwd = cwd;
	myroot = root;
	longest = strlen(myprobefunc);
}

ERROR
{
	printf("fault\n");
}
