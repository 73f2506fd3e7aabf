/* Each thread's own array. */
#pragma D option quiet

self int calls[string];

BEGIN
{
	self->calls["open"] = 3;
	self->calls["open"]++;
	self->times[1, "a"] = 7;
	printf("%d %d %d\n", self->calls["open"], self->calls["close"], self->times[1, "a"]);
	exit(0);
}
