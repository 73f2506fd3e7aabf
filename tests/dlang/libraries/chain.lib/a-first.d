/* Its name comes first, its turn last. #pragma D depends_on library nothing.d */
#pragma D depends_on library middle.d
#pragma D depends_on library types.d

inline int SUM = MIDDLE + sizeof (pair_t);
