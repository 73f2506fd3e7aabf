/* @image: kernel amd64

   copyin() and copyinstr() read what an address of the guest holds; a limit cuts. */
#pragma D option quiet

BEGIN { n = 0; }
fbt::printk:entry
/n++ == 0/
{
	this->s = copyinstr(arg0);
	this->c = (char *)copyin(arg0, 4);
	printf("%d %d %d\n", strlen(this->s) > 8, strlen(copyinstr(arg0, 4)), this->c[0] == *(char *)arg0);
	this->to = (char *)alloca(8);
	copyinto(arg0, 3, this->to);
	printf("%d\n", stringof(this->to) == substr(this->s, 0, 3));
	exit(0);
}
