/* A struct that points to itself. */
#pragma D option quiet

struct node {
	struct node *next;
	int value;
};

BEGIN
{
	this->n = (struct node *)alloca(sizeof (struct node));
	this->n->next = this->n;
	this->n->value = 7;
	printf("%d\n", this->n->next->next->next->next->value);
	exit(0);
}
