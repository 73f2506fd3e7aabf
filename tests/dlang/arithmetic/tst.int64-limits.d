/* 64 bits wrap around. */
#pragma D option quiet

int64_t most;
int64_t least;
uint64_t all;

BEGIN
{
	most = 9223372036854775807;
	least = -9223372036854775807 - 1;
	all = 18446744073709551615u;
	printf("%d %d\n", most + 1, least - 1);
	printf("%d %d\n", -least, least * -1);
	printf("%u %d\n", all, all + 1);
	most++;
	least--;
	all++;
	printf("%d %d %d\n", most, least, all);
	all--;
	printf("%d\n", all);
	exit(0);
}
