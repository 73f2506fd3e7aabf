/* @options: -x amin=Evolving/Evolving/Common

   What is stable enough, or of what nothing is said, is taken. */
#pragma D option quiet

#pragma D attributes Evolving/Stable/Common fine
inline int fine = 2;
inline int plain = 3;
BEGIN { x = fine + plain; printf("%d\n", x); exit(0); }
