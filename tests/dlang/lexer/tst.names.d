/* Names have letters, digits and underscores; case matters. */
#pragma D option quiet

BEGIN
{
	a = 1;
	A = 2;
	_a = 3;
	a_1 = 4;
	beginning = 5;
	self_ = 6;
	printf("%d %d %d %d %d %d\n", a, A, _a, a_1, beginning, self_);
	exit(0);
}
