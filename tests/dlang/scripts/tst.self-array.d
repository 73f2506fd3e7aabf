/* An associative array of each thread. */
#pragma D option quiet

int n;
self int seen[int, string];

tick-1ms
{
	self->seen[n % 3, "key"] += n;
	n++;
}

tick-1ms
/n == 9/
{
	printf("%d %d %d %d\n", self->seen[0, "key"], self->seen[1, "key"], self->seen[2, "key"], self->seen[3, "key"]);
	self->seen[1, "key"] = 0;
	printf("%d\n", self->seen[1, "key"]);
	exit(0);
}
