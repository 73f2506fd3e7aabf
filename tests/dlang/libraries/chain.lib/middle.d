#pragma D depends_on library types.d
#pragma D depends_on library empty.d

inline int MIDDLE = sizeof (struct pair) + 100;

translator pair_t < int v > {
	x = v;
	y = v + 1;
};
