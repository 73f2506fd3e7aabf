/* Which of the names are unsigned. */
#pragma D option quiet

BEGIN
{
	printf("%d%d%d%d\n", (int8_t)-1 < 0, (int16_t)-1 < 0, (int32_t)-1 < 0, (int64_t)-1 < 0);
	n = -1;
	printf("%d%d%d%d\n", (uint8_t)n < 0, (uint16_t)n < 0, (uint32_t)n < 0, (uint64_t)n < 0);
	printf("%d%d%d%d\n", (char)n < 0, (size_t)n < 0, (ssize_t)n < 0, (uintptr_t)n < 0);
	printf("%d%d%d\n", (uchar_t)n < 0, (ulong_t)n < 0, (pid_t)n < 0);
	exit(0);
}
