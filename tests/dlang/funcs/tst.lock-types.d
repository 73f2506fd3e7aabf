/* Any struct, void and 0 are taken for a lock's address; none of it is memory here. */
#pragma D option quiet

struct lock {
	int owner;
};

BEGIN
{
	trace(mutex_owned((struct lock *)0x1000));
}

BEGIN
{
	trace(mutex_owned((void *)0x1000));
}

BEGIN
{
	trace(rw_iswriter(0));
}

BEGIN
{
	exit(0);
}
