/* Time between two events of the same thread, in units that fit. */
#pragma D option quiet

inline string unit[int64_t ns] =
    ns >= 1000000000 ? "s" : ns >= 1000000 ? "ms" : ns >= 1000 ? "us" : "ns";
inline int scaled[int64_t ns] =
    ns >= 1000000000 ? ns / 1000000000 : ns >= 1000000 ? ns / 1000000 : ns >= 1000 ? ns / 1000 : ns;

BEGIN
{
	start = timestamp;
}

tick-7ms
/!seven/
{
	seven = 1;
	this->d = timestamp - start;
	printf("%d %s\n", scaled[this->d], unit[this->d]);
}

tick-3s
{
	this->d = timestamp - start;
	printf("%d %s\n", scaled[this->d], unit[this->d]);
	exit(0);
}
