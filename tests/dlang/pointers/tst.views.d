/* The same bytes through other types. */
#pragma D option quiet

BEGIN
{
	this->p = (uint32_t *)alloca(8);
	this->p[0] = 0x11223344;
	this->p[1] = 0xffffff80;
	this->c = (unsigned char *)this->p;
	this->s = (int16_t *)this->p;
	printf("%x %x %x\n", this->c[0], this->c[3], this->c[4]);
	printf("%d %d\n", this->s[2], *(int8_t *)(this->p + 1));
	printf("%x\n", *(uint64_t *)this->p);
	exit(0);
}
