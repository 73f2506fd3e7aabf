#pragma D depends_on provider nosuch

inline int OF_PROVIDER = 1;
