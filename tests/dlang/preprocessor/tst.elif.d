/* @options: -C -D LEVEL=2

   Conditions of all kinds. */
#pragma D option quiet

#if LEVEL == 1
inline int level = 10;
#elif LEVEL == 2 && !defined(OTHER)
inline int level = 20;
#else
inline int level = 30;
#endif
BEGIN { printf("%d\n", level); exit(0); }
