/* Descriptions match with * ? and [ ]. */
#pragma D option quiet

B*
{
	printf("star\n");
}

dtrace:::B?GIN
{
	printf("question\n");
}

dtrace:::[A-C]EGIN
{
	printf("range\n");
}

dtrace:::*IN
{
	printf("end of it\n");
	exit(0);
}
