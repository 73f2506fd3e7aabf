/* errinfo.d - results that are errors, with their names. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

inline string name[int error] =
    error == 2 ? "no such file" :
    error == 12 ? "no memory" :
    error == 20 ? "not a directory" :
    error == 21 ? "is a directory" :
    error == 22 ? "invalid" :
    error == 27 ? "too big" : "unknown";

fbt::rpc_call:return
/args[1] != 0/
{
	@errors[name[args[1]], args[1]] = count();
}

END
{
	printf("%-16s %3s %5s\n", "DESCRIPTION", "ERR", "COUNT");
	printa("%-16s %3d %@5d\n", @errors);
}
