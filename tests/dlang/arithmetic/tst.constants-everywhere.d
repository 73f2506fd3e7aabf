/* Wherever a constant is asked for. */
#pragma D option quiet

enum bits { ALL = (int8_t)0xff, HIGH = (int)(uint8_t)0xf0, LOW = -16 >> 2 };
inline uint64_t EVERY = (uint64_t)-1;
struct sized {
	char name[(uint8_t)0x103];
	int bits : (uint8_t)0x104;
};

BEGIN
/(uint64_t)-1 == 0xffffffffffffffff && (int8_t)0x80 < 0/
{
	printf("%d %d %d %d\n", ALL, HIGH, LOW, EVERY == (uint64_t)-1);
	printf("%d %d\n", sizeof (struct sized), (int8_t)0xff < 0 ? 1 : 2);
	exit(0);
}
