/* The names that are always there. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d\n", sizeof (int8_t), sizeof (int16_t), sizeof (int32_t), sizeof (int64_t));
	printf("%d %d %d %d\n", sizeof (uint8_t), sizeof (uint16_t), sizeof (uint32_t), sizeof (uint64_t));
	printf("%d %d %d %d\n", sizeof (intptr_t), sizeof (uintptr_t), sizeof (size_t), sizeof (ssize_t));
	printf("%d %d %d %d\n", sizeof (uchar_t), sizeof (ushort_t), sizeof (uint_t), sizeof (ulong_t));
	printf("%d %d %d %d\n", sizeof (u_longlong_t), sizeof (ptrdiff_t), sizeof (id_t), sizeof (pid_t));
	exit(0);
}
