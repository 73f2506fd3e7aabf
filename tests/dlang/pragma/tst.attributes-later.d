/* Attributes may come before what they are about, and change nothing for it. */
#pragma D option quiet

#pragma D attributes Evolving/Evolving/Common later
#pragma D binding "1.5" later
inline int later = 5;
#pragma D attributes Private/Private/Unknown g
int g;
BEGIN { g = later; printf("%d\n", g); exit(0); }
