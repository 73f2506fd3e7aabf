/* Names for what probes know. */
#pragma D option quiet

inline string where = probename;
inline int from_begin = where == "BEGIN";

BEGIN
/from_begin/
{
	printf("%s\n", where);
	exit(0);
}

END
{
	printf("%s %d\n", where, from_begin);
}
