/* Records in a struct of one's own. */
#pragma D option quiet

typedef struct record {
	int pid;
	string name;
	uint64_t bytes[2];
} record_t;

record_t last;

BEGIN
{
	last.pid = 7;
	last.name = "init";
	last.bytes[0] = 100;
	last.bytes[1] = last.bytes[0] * 2;
	printf("%-5d %-10s %6d %6d\n", last.pid, last.name, last.bytes[0], last.bytes[1]);
	exit(0);
}
