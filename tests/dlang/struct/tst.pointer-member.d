/* Lists by pointers between structs. */
#pragma D option quiet

struct node { int v; struct node *next; };

BEGIN { this->a = (struct node *)alloca(16); this->b = (struct node *)alloca(16); this->a->v = 1; this->b->v = 2; this->a->next = this->b; printf("%d %d\n", this->a->next->v, this->a->next->next == NULL); exit(0); }
