-- Text, tables, closures, coroutines, errors and numbers.
local count, lines = {}, 0
for line in io.lines("text") do
  lines = lines + 1
  for word in line:gmatch("%a+") do count[word] = (count[word] or 0) + 1 end
end
local words = {}
for word in pairs(count) do words[#words + 1] = word end
table.sort(words)
for _, word in ipairs(words) do print(word, count[word]) end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(lines, fib(22), 7 // 2, 7.5 % 2, 2 ^ 0.5, 1 << 40, "a" .. 1, #"text", string.format("%q %5.2f %x", "a\nb", 3.14159, 255))
local makers = coroutine.wrap(function() for i = 1, 20 do coroutine.yield(i * i) end end)
for _ = 1, 20 do io.write(makers(), " ") end
print(pcall(error, { code = 1 }) , select("#", pcall(function() local x = nil; return x.y end)))
print(string.pack("<i4dz", 7, 1.5, "text"):byte(1, -1))
local made = load("local a, b = ...; return a * b, setmetatable({}, {__index = function(_, k) return k .. '!' end}).key")
print(made(6, 7))
print((("x"):rep(1000):gsub("x", { x = "yz" })):sub(-10), ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
