/* Enumerations in structs and behind typedefs. */
#pragma D option quiet

typedef enum kind { K_A = 3, K_B } kind_t;

struct s {
	char c;
	kind_t k;
};

struct s s;

BEGIN
{
	s.k = K_B;
	printf("%d %d %d\n", s.k, s.k == K_B, sizeof (struct s));
	exit(0);
}
