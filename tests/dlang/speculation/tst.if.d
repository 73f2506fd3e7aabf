/* Parts of an if are clauses: one may speculate, the other commit. */
#pragma D option quiet

BEGIN
{
	s = speculation();
	n = 0;
}

tick-1ms
{
	if (n < 3) {
		speculate(s);
		printf("n %d\n", n);
	}
	n++;
}

tick-1ms
/n == 4/
{
	commit(s);
}

tick-1ms
/n > 4/
{
	exit(0);
}
