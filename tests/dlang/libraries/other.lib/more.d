#pragma D depends_on library middle.d

inline int MORE = MIDDLE * 2;
