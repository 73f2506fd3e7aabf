/* #if, #ifdef, #else. */
/* @options: -C */
#pragma D option quiet
#define A 1

#if A == 1
inline int chosen = 1;
#else
inline int chosen = 2;
#endif

#ifdef B
#error B is not defined
#endif

#ifndef B
BEGIN
{
	printf("%d\n", chosen);
	exit(0);
}
#endif
