{ for (i = 1; i <= NF; i++) count[$i]++; sum += $NF; length($0) > longest && longest = length($0) }
/probe.*site/ { both++; gsub(/probe/, "<&>"); last = $0 }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
END {
  n = 0; for (word in count) if (word !~ /^[0-9]+$/) words[++n] = word
  for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (words[j] < words[i]) { t = words[i]; words[i] = words[j]; words[j] = t }
  for (i = 1; i <= n; i++) print words[i], count[words[i]]
  printf "%d %d %s %.10f %s\n", sum, both, last, sin(1) + exp(2) - log(3), toupper(substr("kinst", 2, 3))
  print fib(20), split("a:b:c", parts, ":"), parts[3], index("rewrite", "write"), 2 ** 40, int(7.9), longest
}
