#pragma D depends_on library provider.d

inline int UPON = 2;
