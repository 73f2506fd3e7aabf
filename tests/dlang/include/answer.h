#define ANSWER 42
struct answer {
	int value;
};
