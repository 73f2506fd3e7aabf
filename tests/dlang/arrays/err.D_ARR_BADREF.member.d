/* Nor a member's; what is computed is constant, too. */
struct s {
	char name[8];
};

BEGIN
{
	p = (struct s *)alloca(16);
	trace(p->name[sizeof (struct s)]);
}
