typedef struct pair {
	int x;
	int y;
} pair_t;
