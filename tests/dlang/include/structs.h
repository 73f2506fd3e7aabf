#ifndef STRUCTS_H
#define STRUCTS_H
#include "answer.h"
struct pair {
	int first;
	long second;
};
typedef struct pair pair_t;
#define SUM(p) ((p).first + (p).second)
enum colour { RED, GREEN = 5, BLUE };
#endif
