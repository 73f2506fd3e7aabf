/* @options: -x amin=Evolving/Evolving/Common

   What a program says of its own names is compared with the least that is wanted. */
#pragma D attributes Unstable/Unstable/Common risky
inline int risky = 1;

BEGIN { trace(risky); }
