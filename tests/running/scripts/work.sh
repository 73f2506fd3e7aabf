# Words, arithmetic, patterns, functions, processes and traps of a shell of any kind.
total=0; i=0
while [ $i -lt 200 ]; do i=$((i + 1)); total=$((total + i * 7919 % 101)); done; echo $total
square() { echo $(($1 * $1)); }
for n in 1 2 3; do square $n; done | (read a; read b; echo "$a $b")
text=kinst.rewrite.sh; echo "${text%.*} ${text%%.*} ${text#*.} ${text##*.} ${#text} ${none:-default}"
case "$text" in *.py) echo python ;; kinst*sh) echo shell ;; esac
cat <<END | while read line; do echo "<$line>"; done
first $((1 << 10))
second $(printf '%s-%05d' word 42)
END
(exit 3); echo $?; trap 'echo trapped' USR1; kill -USR1 $$; set -- a "b c" d; shift; echo "$# $1"; eval 'echo $'{2}
for name in te?t n*; do echo "$name"; done; false || echo or; ! false && echo and; printf '%x %e %s\n' 255 1.5 end
