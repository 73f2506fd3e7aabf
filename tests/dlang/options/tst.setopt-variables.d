/* Names and values of options may be any strings. */
#pragma D option quiet

string name;
int x;

BEGIN { @["b"] = sum(1); @["a"] = sum(2); name = "aggsort"; self->on = "yes"; }
BEGIN { setopt(strjoin(name, "key"), self->on); printa("%s", @); }
BEGIN { setopt(strjoin(name, "key"), strtok("no,x", ",")); printa("%s", @); }
BEGIN { setopt(x == 0 ? "aggsortrev" : "quiet"); printa("%s", @); x++; }
BEGIN { setopt(name, self->on); }
BEGIN { setopt("stackindent", lltostr(1000 * 1000)); exit(0); }
