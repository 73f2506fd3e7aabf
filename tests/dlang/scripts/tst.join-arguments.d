/* A line of words, joined: strjoin() in a chain, as scripts of the book make arguments. */
#pragma D option quiet

BEGIN
{
	w[0] = "ls"; w[1] = "-l"; w[2] = "/tmp";
	this->line = "";
	this->line = strjoin(this->line, w[0]);
	this->line = strjoin(this->line, w[1] == "" ? "" : strjoin(" ", w[1]));
	this->line = strjoin(this->line, w[2] == "" ? "" : strjoin(" ", w[2]));
	this->line = strjoin(this->line, w[3] == "" ? "" : strjoin(" ", w[3]));
	printf("%s (%d)\n", this->line, strlen(this->line));
	exit(0);
}
