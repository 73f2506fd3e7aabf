/* Memory for the clause, asked for until there is none. */
#pragma D option quiet

BEGIN
{
	a = alloca(0x800000); b = alloca(0x800000); c = alloca(0x800000);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
