/* A clause that runs once, by a predicate that the clause makes false. */
#pragma D option quiet

int done;

tick-1ms
/!done/
{
	printf("once\n");
	done = 1;
}

tick-5ms
{
	exit(0);
}
