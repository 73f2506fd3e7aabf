/* & and * undo each other; the address of a member is its struct's and its offset. */
#pragma D option quiet

struct s {
	int a;
	int b[4];
	char c;
};

BEGIN
{
	this->p = (struct s *)0x1000;
	printf("%p %p %p\n", &this->p->a, &this->p->b[2], &this->p->c);
	printf("%p %p\n", &*this->p, &this->p[1]);
	printf("%d\n", &this->p->c - (char *)this->p);
	printf("%x\n", (uintptr_t)&((struct s *)0)->c);
	exit(0);
}
