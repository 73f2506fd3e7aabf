/*
 * An array of char is text; its bytes have an order.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::work_init:entry
{
	this->node = `nodes[6];
	printf("%s %c%c %d\n", this->node->v_name, this->node->v_name[0], this->node->v_name[3], sizeof (this->node->v_name));
	printf("%d %d\n", this->node->v_name == "nfsd", strlen(this->node->v_name));
	printf("%s\n", strjoin(`nodes[1]->v_name, `nodes[2]->v_name));
	exit(0);
}
