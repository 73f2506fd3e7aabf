/* Flags as text, decoded by ?: and strjoin(). */
#pragma D option quiet

inline int O_WRONLY = 1;
inline int O_APPEND = 8;
inline int O_CREAT = 0x200;
inline string mode[int flags] = strjoin(
    flags & O_WRONLY ? "W" : "R", strjoin(flags & O_APPEND ? "|APPEND" : "", flags & O_CREAT ? "|CREAT" : ""));

BEGIN
{
	printf("%s %s %s\n", mode[0], mode[O_WRONLY | O_CREAT], mode[0x209]);
	exit(0);
}
