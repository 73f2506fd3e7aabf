#define FINE 1
struct half {
	int a;
	nonsense b;
};
