/* A value by its path. */
#pragma D option quiet

BEGIN
{
	this->j = "{\"name\": \"kmem\", \"n\": [1, 2.5, {\"deep\": \"yes\"}, -3e2], \"t\": true, \"z\": null, \"o\": {\"p\": {\"q\": 7}}}";
	printf("[%s]\n", json(this->j, "name"));
	printf("[%s]\n", json(this->j, "n[0]"));
	printf("[%s]\n", json(this->j, "n[1]"));
	printf("[%s]\n", json(this->j, "n[2].deep"));
	printf("[%s]\n", json(this->j, "n[3]"));
	printf("[%s]\n", json(this->j, "t"));
	printf("[%s]\n", json(this->j, "z"));
	printf("[%s]\n", json(this->j, "o.p.q"));
	exit(0);
}
