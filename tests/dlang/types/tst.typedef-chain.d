/* A typedef of a typedef. */
#pragma D option quiet

typedef int a_t;
typedef a_t b_t;
typedef b_t *p_t;

BEGIN { x = (b_t)300; this->p = (p_t)alloca(4); *this->p = x; printf("%d %d %d\n", sizeof (b_t), sizeof (p_t), *this->p); exit(0); }
