/* Variables of D wherever a probe fires. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt:::,
profile-4999,
BEGIN,
END,
ERROR
{
	mypid = pid;
	myppid = ppid;
	mytid = tid;
	myuid = uid;
	mygid = gid;
	myerrno = errno;
	myipl = ipl;
	mycpu = cpu;
	mystackdepth = stackdepth;
	myustackdepth = ustackdepth;
	mycaller = caller;
	myucaller = ucaller;
	myjid = jid;
	myepid = epid;
	myid = id;
	mytimestamp = timestamp;
	myvtimestamp = vtimestamp;
	mywalltimestamp = walltimestamp;
	myarg0 = arg0;
	myarg5 = arg5;
}

ERROR
{
	printf("fault\n");
}
